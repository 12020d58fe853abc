// The page with a simulated network and its controller: an operator's work.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { ADDRESSES, faults, visit } from "./views.mjs";
import { BOUND, PICTURES, Program, browse, isLive, items, network, open, pingAll, places, says, until } from "./lab.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** Opens a torus of nine switches whose hosts are known. */
async function torus(t) {
  const { program, url } = await network(t, "torus,3,3", "discovery,hosts,routing");
  await pingAll(program);
  return { program, url };
}

const hasAll = () =>
  ["Switches (9)", "Links (18)", "Hosts (9)"].every((title) =>
    [...document.querySelectorAll(".lists h2")].some((head) => head.textContent === title),
  );

test("a network is shown, and a cut link at its place", async (t) => {
  const { program, url } = await torus(t);
  const page = await open(browser, t, url);
  await until(page, hasAll);
  const placed = await places(page);
  assert.equal(Object.keys(placed).length, 18);
  const names = await items(page, "Switches").locator(".name").allTextContents();
  assert.deepEqual(names.slice(0, 3), ["s1x1", "s1x2", "s1x3"]);
  program.type("link s1x1 s2x1 down");
  const isCut = () => [...document.querySelectorAll(".item.bad .note")].some((note) => note.textContent === "down");
  const ms = await until(page, isCut);
  t.diagnostic(`link cut to seen in the page: ${ms.toFixed(0)} ms`);
  // docs/web-figures.md has the time on a quiet machine; even a busy machine does not need this much more.
  assert.ok(ms < 5_000, `${ms} ms`);
  await until(page, says, "1 link down");
  assert.deepEqual(await places(page), placed);
  await until(page, () => document.querySelectorAll(".lists section:first-child .item.bad").length === 2);
  if (PICTURES !== null) await makeTraffic(page, program);
  await items(page, "Switches").filter({ hasText: "s2x2" }).click();
  if (PICTURES !== null) await page.screenshot({ path: `${PICTURES}web-network.png` });
  await compareOutline(page);
  program.type("link s1x1 s2x1 up");
  await until(page, () => document.querySelectorAll(".item.bad").length === 0);
  assert.deepEqual(await places(page), placed);
});

/** Creates some load for the guides' picture. */
async function makeTraffic(page, program) {
  program.type("iperf h1x3 h3x2");
  await until(page, () => [...document.querySelectorAll(".lists section:nth-child(2) .note")].some((note) => /Mbit|Gbit/.test(note.textContent)));
}

const OUTLINE = new URL("network.aria.txt", import.meta.url);

/** The parts that differ between runs: loads, and the socket's folder. */
const VARYING = [
  [/ \d+(\.\d)? [kMG]?bit\/s( \(\d+ %\))?/g, " LOAD"],
  [/punix:\S+/g, "ADDRESS"],
];

/** Checks that the page still equals the guides' picture; otherwise, PICTURES=1 takes a new one, and writes its outline. */
async function compareOutline(page) {
  const outline = async () => {
    const parts = await Promise.all(["header", ".tools", "aside"].map((part) => page.locator(part).ariaSnapshot()));
    return VARYING.reduce((text, [pattern, name]) => text.replace(pattern, name), `${parts.join("\n")}\n`);
  };
  // Each link has a load once the counters have been read twice.
  await until(page, () => [...document.querySelectorAll(".lists section:nth-child(2) .note")].every((note) => note.textContent !== ""));
  if (PICTURES !== null) return writeFileSync(OUTLINE, await outline());
  const expected = readFileSync(OUTLINE, "utf8");
  let found = await outline();
  for (const end = performance.now() + BOUND; found !== expected && performance.now() < end; ) found = await outline();
  assert.equal(found, expected, "the page is another than in docs/web-network.png: type 'PICTURES=1 make web-test'");
}

test("the first picture is there within a second or so", async (t) => {
  const { url } = await network(t, "linear,20", "discovery,hosts,l2");
  const page = await open(browser, t, url);
  await until(page, () => Object.keys(document.querySelector(".canvas")?.picture?.places ?? {}).length >= 20);
  const ms = await page.evaluate(() => performance.now());
  t.diagnostic(`from opening to the first picture, 20 switches: ${ms.toFixed(0)} ms`);
  assert.ok(ms < 10_000, `${ms} ms`);
});

test("a switch's entries are in the words of ovs-ofctl, and their counters move", async (t) => {
  const { program, url } = await torus(t);
  const page = await open(browser, t, `${url}#/switch/0000000000000101`);
  const entries = page.locator("section.grid.entries tbody tr");
  await entries.nth(2).waitFor();
  const packets = () => page.locator("section.grid.entries tbody td:nth-child(5)").allTextContents();
  const first = await packets();
  await pingAll(program);
  await until(page, (first) => [...document.querySelectorAll("section.grid.entries tbody td:nth-child(5)")].some((cell, place) => cell.textContent !== first[place]), first);
  await page.getByLabel("Filter entries").fill("dl_type=0x88cc");
  await until(page, () => document.querySelectorAll("section.grid.entries tbody tr").length === 1);
  assert.match(await entries.first().textContent(), /dl_type=0x88cc.*CONTROLLER.*discovery/);
  assert.match(await page.locator("section.grid.ports tbody").textContent(), /s1x1-eth1/);
  const form = await page.locator("section.grid.tables tbody tr").first().locator("td:nth-child(5)").textContent();
  assert.match(form, /^(direct code|compound hash|tuple space: \d+ hash tables)$/);
});

test("an entry is changed after a question, refusals stand under the field, and two tabs end with the same", async (t) => {
  const { url } = await network(t, "single,2", "hub");
  const address = `${url}#/switch/0000000000000001`;
  const tabs = [await open(browser, t, address, { expected: [/400/] }), await open(browser, t, address)];
  const send = async (page, command, flow, verb) => {
    await page.getByLabel("Command").selectOption(command);
    await page.getByLabel("Entry", { exact: true }).fill(flow);
    await page.getByRole("button", { name: "Send…" }).click();
    await page.getByRole("dialog").getByText(flow).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: verb }).click();
  };
  for (const page of tabs) await page.getByText("Change this switch").click();
  const [first, second] = tabs;
  const posts = sent(first);
  await send(first, "add", "priority=7,in_port=77x,actions=output:2", "Cancel");
  await send(first, "add", "priority=7,in_port=77x,actions=output:2", "Add");
  await until(first, () => /77x.*For example:/.test(document.querySelector("#flow-problem").textContent));
  assert.equal(posts.length, 1, "Cancel sends nothing");
  await send(first, "add", "priority=7,in_port=1,actions=output:2", "Add");
  await until(first, () => document.body.textContent.includes("The switch has confirmed it."));
  await Promise.all([
    send(first, "modify_strict", "priority=7,in_port=1,actions=output:1", "Modify"),
    send(second, "modify_strict", "priority=7,in_port=1,actions=drop", "Modify"),
  ]);
  const actions = (page) => page.locator("section.grid.entries tbody tr", { hasText: "in_port=1" }).locator("td:nth-child(4)").textContent();
  for (const page of tabs) await until(page, () => document.body.textContent.includes("The switch has confirmed it."));
  // Wait until each page has read the switch after both changes.
  const reads = tabs.map((page) => page.waitForResponse(/flows$/).then(() => page.waitForResponse(/flows$/)));
  await Promise.all(reads);
  await until(first, () => document.querySelector("section.grid.entries tbody").textContent.includes("in_port=1"));
  assert.equal(await actions(first), await actions(second));
});

/** Records the addresses of a page's requests from now on. */
function sent(page) {
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
  return posts;
}

test("a path is found, and shown in the picture", async (t) => {
  const { url } = await torus(t);
  const page = await open(browser, t, url);
  await until(page, hasAll);
  await page.getByRole("link", { name: "Path" }).click();
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const hops = page.locator("section.grid.hops tbody tr");
  await hops.first().waitFor();
  const names = await hops.locator("td:first-child").allTextContents();
  assert.ok(names.length >= 2 && names.every((name) => /^s\dx\d$/.test(name)), String(names));
  // All hosts have pinged each other, so there are entries for this packet.
  await page.getByText("By the tables, a packet takes").waitFor();
  const entries = page.locator("section.grid.tables tbody tr");
  assert.match(await entries.first().textContent(), /priority=\d+,.*dl_dst=.*output:\d+/);
  await page.getByRole("button", { name: "Show in the picture" }).click();
  await page.getByRole("button", { name: "Hide the path" }).waitFor();
});

test("a way by the tables that differs from the shortest path, or ends, is told", async (t) => {
  const { program, url } = await network(t, "ring,3", "discovery,hosts");
  program.type("pingall");
  const page = await open(browser, t, url);
  await until(page, () => document.querySelectorAll(".lists section:nth-child(3) .item").length === 3);
  const show = async () => {
    await page.goto(`${url}#/path`);
    await page.getByLabel("From host").selectOption("00:00:00:00:00:01");
    await page.getByLabel("to host").selectOption("00:00:00:00:00:02");
    await page.getByRole("button", { name: "Show", exact: true }).click();
  };
  await show();
  await page.getByText("a packet does not arrive. It ends at s1").waitFor();
  const links = await (await fetch(`${url}api/v1/links`)).json();
  const out = (from, to) => links.find((link) => link.from.startsWith(`000000000000000${from}:`) && link.to.startsWith(`000000000000000${to}:`)).from.split(":")[1];
  const hosts = await (await fetch(`${url}api/v1/hosts`)).json();
  const last = hosts.find((host) => host.mac.endsWith("02")).port.split(":")[1];
  for (const [at, port] of [[1, out(1, 3)], [3, out(3, 2)], [2, last]]) {
    const body = JSON.stringify({ flow: `priority=9,dl_dst=00:00:00:00:00:02,actions=output:${port}` });
    const response = await fetch(`${url}api/v1/switches/${at}/flows`, { method: "POST", body });
    assert.equal(response.status, 204);
  }
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByText("a packet takes another way than this path").waitFor();
  assert.equal(await page.locator("section.grid.tables tbody tr").count(), 3);
});

test("rates and programs have what the controller counts", async (t) => {
  const { program, url } = await torus(t);
  const page = await open(browser, t, url);
  await until(page, hasAll);
  await page.getByRole("link", { name: "Programs" }).click();
  await until(page, () => document.querySelector("section.grid.programs tbody").textContent.includes("routing"));
  await until(page, () => document.body.textContent.includes("No program has panicked."));
  await page.getByRole("link", { name: "Rates" }).click();
  await page.locator(".plot canvas").nth(2).waitFor();
  await pingAll(program);
  await until(page, () => document.querySelectorAll("section.grid.switches tbody tr").length === 9);
});

test("events are those of what is picked", async (t) => {
  const { program, url } = await torus(t);
  const page = await open(browser, t, url);
  await until(page, hasAll);
  program.type("link s1x1 s2x1 down");
  program.type("link s3x2 s3x3 down");
  await until(page, () => document.querySelectorAll(".lists section:nth-child(2) .item.bad").length === 2);
  await items(page, "Switches").filter({ hasText: "s3x3" }).click();
  await page.getByRole("link", { name: "Events" }).click();
  const rows = page.locator("tr.link_down");
  await rows.first().waitFor();
  const texts = await rows.allTextContents();
  assert.ok(texts.every((text) => text.includes("s3x3")), String(texts));
  await page.getByRole("button", { name: "Show all" }).click();
  await until(page, () => [...document.querySelectorAll("tr.link_down")].some((row) => row.textContent.includes("s1x1")));
});

test("a controller that restarts is found again", async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/urtica-web-`);
  const start = (port) =>
    new Program(t, ["run", "hub", "--listen", `punix:${folder}/socket`, `--northbound=127.0.0.1:${port}`]);
  const listens = /the northbound interface listens address=\S*:(\d+)/;
  const first = start(0);
  const [, port] = await first.says(listens);
  const page = await open(browser, t, `http://127.0.0.1:${port}/`, { expected: [/Failed to load resource/] });
  await until(page, isLive);
  await first.kill();
  await until(page, () => document.body.dataset.status === "lost");
  const second = start(port);
  await second.says(listens);
  await until(page, isLive);
});

test("a configuration that is reloaded is shown: its programs, and its settings", async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/urtica-web-`);
  const write = (programs) => {
    const settings = { programs, listen: [`punix:${folder}/socket`], northbound: "127.0.0.1:0" };
    const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
    writeFileSync(`${folder}/urtica.toml`, lines.join(""));
  };
  write(["hub"]);
  const program = new Program(t, ["run", "--config", `${folder}/urtica.toml`]);
  const [, port] = await program.says(/the northbound interface listens address=\S*:(\d+)/);
  const page = await open(browser, t, `http://127.0.0.1:${port}/#/programs`);
  const setting = page.locator("section.grid.settings tbody tr", { hasText: "programs" }).locator("td").nth(1);
  await setting.waitFor();
  assert.equal(await setting.textContent(), "hub");
  write(["l2", "discovery"]);
  program.signal("SIGHUP");
  await until(page, () => document.querySelector("#status").textContent.endsWith("l2, discovery"));
  await until(page, () => ["l2", "discovery"].every((name) => document.querySelector("section.grid.programs tbody").textContent.includes(name)));
  await until(page, () => [...document.querySelectorAll("section.grid.settings tbody td")].some((cell) => cell.textContent === "l2, discovery"));
});

test("a token is asked for once, kept out of storage, and asked for again when it is revoked", async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/urtica-web-`);
  const file = `${folder}/tokens`;
  const [old, other] = ["0123456789abcdef", "fedcba9876543210"];
  writeFileSync(file, `${old}\n`, { mode: 0o600 });
  const settings = { programs: ["hub"], listen: [`punix:${folder}/socket`], northbound: "127.0.0.1:0", "northbound-tokens": file };
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
  writeFileSync(`${folder}/urtica.toml`, lines.join(""));
  const program = new Program(t, ["run", "--config", `${folder}/urtica.toml`]);
  const [, port] = await program.says(/the northbound interface listens address=\S*:(\d+)/);
  const page = await open(browser, t, `http://127.0.0.1:${port}/`, { expected: [/401/] });
  const give = async (token) => {
    await page.getByLabel("Bearer token").fill(token);
    await page.keyboard.press("Enter");
  };
  await page.getByRole("dialog").waitFor();
  await give("wrong-wrong-wrong");
  await until(page, () => document.querySelector("dialog[open]")?.textContent.includes("no valid token"));
  await give(old);
  await until(page, isLive);
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!stored.includes(old), stored);
  writeFileSync(file, `${other}\n`);
  program.signal("SIGHUP");
  await until(page, () => document.body.dataset.status === "locked");
  await page.getByRole("dialog").waitFor();
  await give(other);
  await until(page, isLive);
});

test("a read-only token sees everything and no controls, until it may change something", async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/urtica-web-`);
  const file = `${folder}/tokens`;
  const token = "0123456789abcdef";
  writeFileSync(file, `read-only ${token}\n`, { mode: 0o600 });
  const options = ["--listen", `punix:${folder}/socket`, "--northbound=127.0.0.1:0", "--northbound-tokens", file];
  const program = new Program(t, ["run", "hub", ...options]);
  const [, port] = await program.says(/the northbound interface listens address=\S*:(\d+)/);
  const page = await open(browser, t, `http://127.0.0.1:${port}/#/switch/0000000000000001`, { expected: [/401/] });
  await page.getByLabel("Bearer token").fill(token);
  await page.keyboard.press("Enter");
  await until(page, isLive);
  await page.getByText("may only read").waitFor();
  assert.equal(await page.getByText("Change this switch").isVisible(), false);
  writeFileSync(file, `${token}\n`);
  program.signal("SIGHUP");
  await page.getByText("Change this switch").waitFor();
  assert.equal(await page.getByText("may only read").isVisible(), false);
});

test("all can be done by keyboard, and screen readers know the names", async (t) => {
  const { url } = await torus(t);
  const page = await open(browser, t, url);
  await until(page, hasAll);
  await page.keyboard.press("/");
  await page.keyboard.type("s2x3");
  await page.keyboard.press("Enter");
  await until(page, () => document.querySelector(".details h2")?.textContent.startsWith("s2x3"));
  assert.equal(await page.locator(".item[aria-pressed=true] .name").textContent(), "s2x3");
  for (const address of ADDRESSES) {
    await visit(page, address);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const serious = await faults(page);
      assert.deepEqual(serious, [], `${address}, ${colorScheme}`);
    }
  }
});

test("a phone in portrait can look", async (t) => {
  const { url } = await torus(t);
  const page = await open(browser, t, url, { viewport: { width: 390, height: 844 } });
  await until(page, hasAll);
  for (const address of ADDRESSES) {
    await visit(page, address);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${address} is ${width} wide`);
  }
});

test("an emulated network is cut, repaired, stopped and pinged from the page, each after a question", async (t) => {
  const { url } = await network(t, "ring,3", "discovery,hosts,routing");
  const page = await open(browser, t, url);
  const agree = async (effect, verb) => {
    await page.getByRole("dialog").getByText(effect).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: verb }).click();
  };
  // A busy machine delays pings, so one complete round of several is enough.
  const ping = async (name, effect, expected) => {
    const told = page.locator(".emulation [role=status]");
    for (const end = performance.now() + BOUND; performance.now() < end; ) {
      await page.getByRole("button", { name }).click();
      await agree(effect, "Ping");
      await until(page, () => / answered/.test(document.querySelector(".emulation [role=status]").textContent));
      if ((await told.textContent()).includes(expected)) return;
    }
    assert.fail(`never: ${expected}`);
  };
  await page.getByText("Emulated network").click();
  await ping("Ping all…", "each of 3 hosts ping every other", "6 of 6 pings answered");
  await until(page, () => document.querySelectorAll(".lists section:nth-child(3) .item").length === 3);
  await items(page, "Links").first().click();
  const cut = page.getByRole("button", { name: "Cut this link…" });
  const posts = sent(page);
  await cut.click();
  await agree("this cuts it", "Cancel");
  await cut.click();
  await agree("this cuts it", "Cut");
  await until(page, says, "1 link down");
  assert.equal(posts.length, 1, "Cancel sends nothing");
  // They still reach each other around the cut.
  await page.getByLabel("From", { exact: true }).selectOption("h2");
  await page.getByLabel("to", { exact: true }).selectOption("h3");
  await ping("Ping…", "Host h2: this makes it ping h3 once", "1 of 1 ping answered");
  await page.getByRole("list", { name: "What is cut or stopped" }).getByRole("button", { name: "Repair this link" }).click();
  await agree("this repairs it", "Repair");
  await until(page, () => document.querySelectorAll(".item.bad").length === 0);
  await items(page, "Switches").filter({ hasText: "s2" }).click();
  await page.getByRole("button", { name: "Stop this switch…" }).click();
  await agree("Its entries are lost", "Stop");
  await until(page, says, "1 switch gone");
  await page.getByRole("button", { name: "Start this switch…" }).click();
  await agree("this starts it", "Start");
  await until(page, () => !document.querySelector(".canvas").getAttribute("aria-label").includes("gone"));
  await page.getByRole("button", { name: "Send traffic…" }).click();
  await agree("10 Mbit/s to h3", "Send");
  await until(page, () => [...document.querySelectorAll(".lists section:nth-child(2) .note")].some((note) => note.textContent.includes("Mbit/s")));
});
