// Hostile networks must not harm the page: names with markup, controllers that come and go, endless events.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { aHost, aPort, aSwitch, dpid, small } from "./fake.mjs";
import { atEnd, browse, isLive, items, open, places, says, until } from "./lab.mjs";
import { visit } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** Names that others may give to their switches, ports, hosts and programs. */
const NAMES = ["<img src=x onerror=alert(1)>", "\u202egnp.exe", "שלום \u2066<b>", "x".repeat(10_000), "</script><script>alert(2)</script>"];

/** Counts the elements that a page would have if it interpreted any name as markup. */
const made = () => document.querySelectorAll("img, b, main script").length;

/** Finds elements that are wider than their space. */
const tooWide = () => {
  const boxes = [document.documentElement, ...document.querySelectorAll(".view, aside, .emulation, .details, .bar")];
  return boxes.filter((box) => box.scrollWidth > box.clientWidth).map((box) => `${box.className}: ${box.scrollWidth} > ${box.clientWidth}`);
};

test("names are text, whatever they have in them", async (t) => {
  const fake = small();
  const names = NAMES;
  fake.lists.switches = names.map((name, place) => aSwitch(place + 1, name));
  fake.lists.programs = names;
  fake.lists.ports = names.map((name, place) => ({ switch: dpid(place + 1), age_seconds: 0, ports: [aPort(1, name)] }));
  // The switch view requests paths that this interface lacks.
  const page = await open(browser, t, await fake.start(t), { expected: [/404/] });
  await until(page, isLive);
  const rows = items(page, "Switches");
  assert.equal(await rows.count(), names.length);
  for (const { id } of fake.lists.switches) fake.tell("port_changed", { dpid: id, port_no: "00000001", name: names[0] });
  await rows.first().click();
  await page.getByRole("button", { name: "Tables and ports" }).click();
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator("tr.event").first().waitFor();
  assert.equal(await page.evaluate(made), 0);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("link", { name: "Network" }).click();
  // Reading texts does not wait until the list is drawn.
  await items(page, "Switches").nth(names.length - 1).waitFor();
  const texts = await items(page, "Switches").locator(".name").allTextContents();
  assert.ok(texts.includes(names[0]));
  // Characters that change the direction of text are not shown, and long names are cut.
  assert.ok(texts.every((text) => text.length <= 64 && !/[\u202a-\u202e\u2066-\u2069]/.test(text)), String(texts));
  assert.deepEqual(await page.evaluate(tooWide), []);
});

test("hosts, emulated parts and events are text, too, and no view grows too wide for them", async (t) => {
  const fake = small();
  const attached = `${dpid(1)}:2`;
  fake.lists.hosts = NAMES.map((name, place) => aHost(place + 1, attached, name));
  fake.lists.paths = [];
  fake.lists.trace = { delivered: false, unfinished: false, hops: [], packet: NAMES[0] };
  fake.controller = {
    version: NAMES[0],
    running_seconds: 1,
    programs: NAMES.map((name) => ({ name, running_seconds: 1 })),
    panics: NAMES.map((name) => ({ program: name, switch: dpid(1), reason: name, age_seconds: 1 })),
    settings: NAMES.map((name) => ({ name, values: [name] })),
  };
  fake.emulation = {
    switches: NAMES.map((name, place) => ({ name, id: dpid(place + 1), running: false })),
    hosts: NAMES.map((name, place) => ({ name, mac: fake.lists.hosts[place].mac, ipv4: "10.0.0.1" })),
    links: NAMES.map((name) => ({ a: attached, b: name, up: false })),
  };
  const page = await open(browser, t, await fake.start(t), { expected: [/404/] });
  await until(page, isLive);
  for (const name of NAMES) tellAll(fake, name);
  await page.getByText("Emulated network").click();
  await page.getByRole("list", { name: "What is cut or stopped" }).getByRole("listitem").nth(2 * NAMES.length - 1).waitFor();
  await items(page, "Hosts").first().click();
  await page.getByRole("button", { name: "Repair its link…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await page.evaluate(tooWide), []);
  await page.keyboard.press("Escape");
  for (const address of ["path", "rates", "programs", "events", `switch/${dpid(1)}`]) {
    await visit(page, address);
    if (address === "path") await page.getByRole("button", { name: "Show", exact: true }).click();
    if (address === "path") await page.getByText("does not arrive").waitFor();
    if (address === "programs") await page.locator("section.grid.panics tbody tr").nth(NAMES.length - 1).waitFor();
    if (address === "events") await page.locator("tr.event").nth(6 * NAMES.length - 1).waitFor();
    assert.deepEqual(await page.evaluate(tooWide), [], address);
    assert.equal(await page.evaluate(made), 0, address);
  }
});

/** Sends an event of each kind whose text is chosen by others. */
function tellAll(fake, name) {
  const port = { dpid: dpid(1), port_no: "00000002", name };
  const host = { mac: "02:00:00:00:00:01", ipv4: [name], port };
  fake.tell("port_added", { ...port });
  fake.tell("host_joined", host);
  fake.tell("host_moved", { ...host, from: name });
  fake.tell("refused", { dpid: dpid(1), code: name, count: 1 });
  fake.tell("program_panicked", { program: name, dpid: null, reason: name });
  fake.tell("programs_changed", { programs: [name] });
}

test("refusals, panics and changes of programs are told, whatever they say", async (t) => {
  const fake = small();
  const reason = "<img src=x onerror=alert(1)>";
  fake.controller = {
    version: "1.2.3",
    running_seconds: 7_300,
    programs: [{ name: "l2", running_seconds: 61 }],
    panics: [
      { program: "fragile", switch: null, reason, age_seconds: 5 },
      { program: null, switch: dpid(1), reason: "\u202egnp", age_seconds: 90 },
    ],
    settings: [{ name: "listen", values: ["ptcp:6653", "punix:/run/x"] }],
  };
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  for (const count of [1, 2, 64]) fake.tell("refused", { dpid: dpid(1), code: "OFPFMFC_TABLE_FULL", count });
  fake.tell("program_panicked", { program: "fragile", dpid: null, reason });
  fake.tell("program_panicked", { program: null, dpid: dpid(1), reason: "no" });
  fake.tell("programs_changed", { programs: ["l2", "routing"] });
  await until(page, () => document.querySelector("#status").textContent.endsWith("l2, routing"));
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator("tr.programs_changed").waitFor();
  const told = await page.locator("tr.event td:last-child").allTextContents();
  assert.deepEqual(told, [
    "now these programs run: l2, routing",
    "program without a name has panicked at switch left: no",
    `program fragile has panicked: ${reason}`,
    "switch left has refused a message: OFPFMFC_TABLE_FULL, its 64th refusal",
    "switch left has refused a message: OFPFMFC_TABLE_FULL, its 2nd refusal",
    "switch left has refused a message: OFPFMFC_TABLE_FULL, its 1st refusal",
  ]);
  await page.getByLabel("Kind of events").selectOption("refused");
  await until(page, () => document.querySelectorAll("tr.event").length === 3);
  await page.getByRole("link", { name: "Programs" }).click();
  const rows = (name) => page.locator(`section.grid.${name} tbody tr`);
  await rows("panics").nth(1).waitFor();
  const cells = async (row) => row.locator("td").allTextContents();
  assert.deepEqual(await cells(rows("panics").nth(0)), ["5 s", "fragile", "–", reason]);
  assert.deepEqual(await cells(rows("panics").nth(1)), ["1 min", "without a name", "left", "\ufffdgnp"]);
  assert.deepEqual((await cells(rows("programs").nth(0))).slice(0, 2), ["l2", "1 min"]);
  assert.deepEqual(await cells(rows("settings").first()), ["listen", "ptcp:6653, punix:/run/x"]);
  assert.equal(await page.locator("main h2").textContent(), "Urtica 1.2.3, running for 2 h");
  assert.equal(await page.evaluate(() => document.querySelectorAll("main img").length), 0);
});

test("a switch that flaps a hundred times a second neither stops the page nor floods the controller", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  const placed = await places(page);
  const [left, both] = [fake.lists.switches.slice(0, 1), fake.lists.switches];
  const began = performance.now();
  for (let time = 0; time < 300; time += 1) {
    fake.lists.switches = time % 2 === 0 ? left : both;
    fake.tell(time % 2 === 0 ? "switch_down" : "switch_up", { dpid: dpid(2), ports: [] });
    await new Promise((resolve) => setTimeout(resolve, began + 10 * (time + 1) - performance.now()));
  }
  const seconds = (performance.now() - began) / 1000;
  const reads = fake.asked.get("/api/v1/switches");
  assert.ok(reads <= 5 * seconds + 5, `${reads} reads in ${seconds} s`);
  await until(page, () => document.querySelectorAll(".lists .item.bad").length === 0);
  assert.deepEqual(await places(page), placed);
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator("tr.event").nth(200).waitFor();
});

test("a controller that goes leaves nothing that looks live, and is found again when it comes", async (t) => {
  const fake = small();
  const url = await fake.start(t);
  const page = await open(browser, t, url, { expected: [/Failed to load resource/] });
  await until(page, isLive);
  await page.route("**/api/**", (route) => route.abort());
  const lostMs = await noteTries(page);
  fake.hangUp();
  await until(page, () => document.body.dataset.status === "lost");
  const banner = page.locator("#banner");
  assert.match(await banner.textContent(), /does not answer .* What is shown is \d+ s old\. Next try in \d+ s\./);
  const look = await page.evaluate(() => getComputedStyle(document.querySelector(".view")).filter);
  assert.match(look, /grayscale/);
  // Each try waits twice as long as the last one, plus or minus at most a quarter.
  await until(page, () => window.tries.length >= 4);
  const tries = await page.evaluate(() => window.tries);
  [500, 1_000, 2_000, 4_000].forEach((ms, place) => {
    const waited = tries[place] - (tries[place - 1] ?? lostMs);
    assert.ok(waited >= 0.75 * ms, `${waited} ms before try ${place + 1}`);
  });
  fake.lists.hosts = [];
  await page.unroute("**/api/**");
  // A browser that is online again tries at once.
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await until(page, isLive);
  assert.equal(await items(page, "Hosts").count(), 0);
  assert.equal(await banner.isVisible(), false);
});

/** Makes a page note the times, by its own clock, at which it requests events from now on; returns its current time. */
function noteTries(page) {
  return page.evaluate(() => {
    const { fetch } = window;
    window.tries = [];
    window.fetch = (url, init) => {
      if (String(url).endsWith("/events")) window.tries.push(performance.now());
      return fetch(url, init);
    };
    return performance.now();
  });
}

test("a page of another origin has this one in no frame", async (t) => {
  const fake = small();
  const url = await fake.start(t);
  const other = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><title>evil</title><iframe src="${url}"></iframe>`);
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  atEnd(t, () => {
    other.close();
    other.closeAllConnections();
  });
  const page = await open(browser, t, `http://127.0.0.1:${other.address().port}/`, { expected: [/frame/i] });
  const frame = page.frames()[1];
  assert.match(frame.url(), /^chrome-error:/);
  assert.equal(await frame.locator("header").count(), 0);
});

test("a browser whose clock is an hour off shows the controller's time", async (t) => {
  const fake = small();
  fake.aheadMs = 3_600_000;
  const page = await open(browser, t, await fake.start(t), { timezoneId: "UTC" });
  await until(page, isLive);
  fake.tell("switch_down", { dpid: dpid(2), ports: [] });
  await page.getByRole("link", { name: "Events" }).click();
  const text = await page.locator("tr.switch_down .time").textContent();
  const at = new Date(Date.now() + fake.aheadMs).toISOString().slice(11, 16);
  assert.equal(text.slice(0, 5), at);
});

test("what has left is forgotten after ten minutes, also while nothing else happens", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t), { prepare: (page) => page.clock.install() });
  await until(page, isLive);
  fake.lists.switches = fake.lists.switches.slice(0, 1);
  fake.lists.links = [];
  fake.tell("switch_down", { dpid: dpid(2), ports: [] });
  await until(page, says, "1 switch gone, 1 link down");
  const reads = () => ["switches", "links"].map((list) => fake.asked.get(`/api/v1/${list}`));
  const before = reads();
  const pass = async (minutes) => {
    for (let third = 0; third < 3 * minutes; third += 1) {
      // Silence and a slow response would count as a loss, so there is an event and a response between two jumps of the clock.
      const hosts = fake.asked.get("/api/v1/hosts");
      fake.tell("host_left", { mac: "02:00:00:00:00:09" });
      await fake.whenAsked("/api/v1/hosts", hosts + 1);
      const ports = fake.asked.get("/api/v1/ports") ?? 0;
      await page.clock.fastForward(20_000);
      await fake.whenAsked("/api/v1/ports", ports + 1);
    }
  };
  await pass(9);
  assert.ok(await page.evaluate(says, "1 switch gone, 1 link down"));
  await pass(2);
  await until(page, () => document.querySelector(".canvas").getAttribute("aria-label") === "The network: 1 switch, 0 links, 1 host");
  assert.equal(await items(page, "Switches").count(), 1);
  // Only the passed time has removed them.
  assert.deepEqual(reads(), before);
});
