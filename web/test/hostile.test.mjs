// What must not happen, whatever a network says: names that are markup, controllers that come and go, events without end.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Fake, aHost, aLink, aPort, aSwitch, dpid } from "./fake.mjs";
import { atEnd, browse, items, open, places, until } from "./lab.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

const isLive = () => document.body.dataset.status === "live";

/** Two switches with a link and a host. */
function small() {
  const fake = new Fake();
  fake.lists = {
    switches: [aSwitch(1, "left"), aSwitch(2, "right")],
    links: aLink(`${dpid(1)}:1`, `${dpid(2)}:1`),
    hosts: [aHost(1, `${dpid(1)}:2`, "10.0.0.1")],
    ports: [1, 2].map((id) => ({ switch: dpid(id), age_seconds: 0.1, ports: [aPort(1, `s${id}-eth1`)] })),
    programs: ["l2"],
  };
  return fake;
}

test("names are text, whatever they have in them", async (t) => {
  const fake = small();
  const names = ["<img src=x onerror=alert(1)>", "\u202egnp.exe", "שלום \u2066<b>", "x".repeat(10_000), "</script><script>alert(2)</script>"];
  fake.lists.switches = names.map((name, place) => aSwitch(place + 1, name));
  fake.lists.programs = names;
  fake.lists.ports = names.map((name, place) => ({ switch: dpid(place + 1), age_seconds: 0, ports: [aPort(1, name)] }));
  // The switch view asks for what this interface does not have.
  const page = await open(browser, t, await fake.start(t), { expected: [/404/] });
  await until(page, isLive);
  const rows = items(page, "Switches");
  assert.equal(await rows.count(), names.length);
  for (const { id } of fake.lists.switches) fake.tell("port_changed", { dpid: id, port_no: "00000001", name: names[0] });
  await rows.first().click();
  await page.getByRole("button", { name: "Tables and ports" }).click();
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator("tr.event").first().waitFor();
  const made = await page.evaluate(() => document.querySelectorAll("img, b, main script").length);
  assert.equal(made, 0);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("link", { name: "Network" }).click();
  // Reading texts does not wait until the list is drawn.
  await items(page, "Switches").nth(names.length - 1).waitFor();
  const texts = await items(page, "Switches").locator(".name").allTextContents();
  assert.ok(texts.includes(names[0]));
  // What turns the direction of text, and what is too long, is not shown as it is.
  assert.ok(texts.every((text) => text.length <= 64 && !/[\u202a-\u202e\u2066-\u2069]/.test(text)), String(texts));
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(isWide, false);
});

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
  fake.hangUp();
  await until(page, () => document.body.dataset.status === "lost");
  const banner = page.locator("#banner");
  assert.match(await banner.textContent(), /does not answer .* What is shown is \d+ s old\. Next try in \d+ s\./);
  const look = await page.evaluate(() => getComputedStyle(document.querySelector(".view")).filter);
  assert.match(look, /grayscale/);
  fake.lists.hosts = [];
  await page.unroute("**/api/**");
  await until(page, isLive);
  assert.equal(await items(page, "Hosts").count(), 0);
  assert.equal(await banner.isVisible(), false);
});

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

test("links show the load that their ports' counters tell", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  // From one reading to the next, by a gigabit port's whole rate and more.
  const grown = (bytes) => [1, 2].map((id) => ({ switch: dpid(id), age_seconds: 0, ports: [aPort(1, "p", { sent_bytes: bytes })] }));
  let bytes = 0;
  const timer = setInterval(() => (fake.lists.ports = grown((bytes += 12_000_000))), 100);
  atEnd(t, () => clearInterval(timer));
  const note = items(page, "Links").first().locator(".note");
  await until(page, () => /^9\d\d Mbit\/s \(9\d %\)|^1\.\d Gbit/.test(document.querySelector(".lists section:nth-child(2) .note")?.textContent ?? ""));
  assert.match(await note.textContent(), /bit\/s \(\d+ %\)/);
});
