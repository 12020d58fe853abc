// The page with Open vSwitch and hosts in network namespaces: an operator's work, view by view.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Program, atEnd, browse, items, open, until } from "./lab.mjs";
import { OpenVswitch, eventually, missing } from "./openvswitch.mjs";
import { faults } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** Starts three switches in a triangle, with hosts at two of them, and their controller. */
async function triangle(t) {
  const ovs = new OpenVswitch(t);
  await ovs.start(t);
  const options = ["--listen", `punix:${ovs.folder}/controller`, "--northbound=127.0.0.1:0"];
  const program = new Program(t, ["run", "discovery,hosts,routing", ...options]);
  const [, port] = await program.says(/the northbound interface listens address=\S*:(\d+)/);
  const devices = { 1: [], 2: [], 3: [] };
  for (const [a, b] of [[1, 2], [2, 3], [3, 1]]) {
    ovs.addLink(`s${a}-to-s${b}`, `s${b}-to-s${a}`);
    devices[a].push(`s${a}-to-s${b}`);
    devices[b].push(`s${b}-to-s${a}`);
  }
  const hosts = [1, 2].map((number) => {
    devices[number].push(`s${number}-to-h`);
    return ovs.addHost(`h${number}`, `s${number}-to-h`, `10.0.0.${number}`);
  });
  for (const number of [1, 2, 3]) ovs.addBridge(number, devices[number], `unix:${ovs.folder}/controller`);
  await eventually(() => ovs.pings(hosts[0], "10.0.0.2"));
  return { ovs, hosts, program, url: `http://127.0.0.1:${port}/` };
}

const hasHeads = (titles) =>
  titles.every((title) => [...document.querySelectorAll(".lists h2")].some((head) => head.textContent === title));

const says = (text) => document.querySelector(".canvas").getAttribute("aria-label").includes(text);

const SWITCH = "switch/0000000000000001";

test("Open vSwitch is seen and changed", { skip: missing() }, async (t) => {
  const { ovs, hosts, url } = await triangle(t);
  const page = await open(browser, t, url, { expected: [/40[09]|422/] });
  const visit = (address) => page.evaluate((address) => (location.hash = `#/${address}`), address);

  await t.test("the network: switches by their bridges' names, links, hosts and this controller's role", async () => {
    await until(page, hasHeads, ["Switches (3)", "Links (3)", "Hosts (2)"]);
    assert.deepEqual(await items(page, "Switches").locator(".name").allTextContents(), ["s1", "s2", "s3"]);
    assert.deepEqual((await items(page, "Hosts").locator(".name").allTextContents()).sort(), ["10.0.0.1", "10.0.0.2"]);
    await items(page, "Switches").first().click();
    await page.locator(".details dd", { hasText: "equal" }).waitFor();
    await page.locator(".details dd", { hasText: "unix" }).waitFor();
    // The program does not run these switches itself, so it cannot stop them.
    assert.equal(await page.getByText("Emulated network").isVisible(), false);
    assert.equal(await page.getByRole("button", { name: /^(Cut|Stop)/ }).count(), 0);
    await items(page, "Links").first().click();
    await page.locator(".details dd", { hasText: "up" }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: /^(Cut|Stop)/ }).count(), 0);
  });

  await t.test("a cable that is pulled, and plugged in again", async () => {
    ovs.setLink("s1-to-s2", "down");
    await until(page, says, "1 link down");
    await until(page, says, "2 ports down");
    ovs.setLink("s1-to-s2", "up");
    await until(page, () => document.querySelectorAll(".item.bad").length === 0);
  });

  await t.test("a switch: entries, counters that move, groups and meters as Open vSwitch has them", async () => {
    ovs.ofctl("add-group", "s1", "group_id=7,type=all,bucket=actions=output:1,bucket=actions=output:2");
    ovs.ofctl("add-meter", "s1", "meter=3,kbps,band=type=drop,rate=1000");
    await visit(SWITCH);
    await page.locator("section.grid.groups td", { hasText: "group_id=7,type=all,bucket=actions=output:1,bucket=actions=output:2" }).waitFor();
    await page.locator("section.grid.meters td", { hasText: "meter=3" }).waitFor();
    await page.locator("section.grid.ports td", { hasText: "s1-to-s2" }).waitFor();
    const form = page.locator("section.grid.tables tbody tr").first().locator("td:nth-child(5)");
    assert.equal(await form.textContent(), "–");
    const packets = () => page.locator("section.grid.entries tbody td:nth-child(5)").allTextContents();
    await page.locator("section.grid.entries td", { hasText: "10.0.0.2" }).or(page.locator("section.grid.entries td", { hasText: "dl_dst" })).first().waitFor();
    const before = await packets();
    await eventually(() => ovs.pings(hosts[0], "10.0.0.2"));
    await until(page, (before) => [...document.querySelectorAll("section.grid.entries tbody td:nth-child(5)")].some((cell, place) => cell.textContent !== before[place]), before);
    assert.deepEqual(await faults(page), []);
  });

  await t.test("an entry is added and deleted, and what Open vSwitch refuses stands under the field", async () => {
    await page.getByText("Change this switch").click();
    const send = async (command, flow, verb) => {
      await page.getByLabel("Command").selectOption(command);
      await page.getByLabel("Entry", { exact: true }).fill(flow);
      await page.getByRole("button", { name: "Send…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: verb }).click();
    };
    const dumped = () => ovs.ofctl("dump-flows", "s1", "tcp,tp_dst=8080");
    await send("add", "priority=77,tcp,tp_dst=8080,actions=group:99", "Add");
    await until(page, () => document.querySelector("#flow-problem").textContent.includes("OFPBAC_BAD_OUT_GROUP"));
    assert.doesNotMatch(dumped(), /priority=77/);
    await send("add", "priority=77,tcp,tp_dst=8080,actions=group:7", "Add");
    await page.getByText("The switch has confirmed it.").waitFor();
    assert.match(dumped(), /priority=77,tcp,tp_dst=8080 actions=group:7/);
    await page.locator("section.grid.entries tr", { hasText: "tp_dst=8080" }).waitFor();
    await send("delete", "tcp,tp_dst=8080", "Delete");
    await eventually(() => !dumped().includes("priority=77"));
  });

  await t.test("another role of this controller", async () => {
    const ask = async (role) => {
      await page.getByLabel("Role of this controller").selectOption(role);
      await page.getByRole("button", { name: "Ask for it…" }).click();
      await page.getByRole("dialog").getByText(`asks to be ${role}`).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Ask" }).click();
    };
    const isSecondary = () => ovs.vsctl("--bare", "--columns=role", "list", "controller").includes("slave");
    await ask("secondary");
    await eventually(isSecondary);
    await ask("equal");
    await eventually(() => !isSecondary());
  });

  await t.test("a path, by the controller and by the tables", async () => {
    await eventually(() => ovs.pings(hosts[0], "10.0.0.2"));
    await visit("path");
    const macs = Object.fromEntries((await (await fetch(`${url}api/v1/hosts`)).json()).map(({ mac, ipv4 }) => [ipv4[0], mac]));
    await page.getByLabel("From host").selectOption(macs["10.0.0.1"]);
    await page.getByLabel("to host").selectOption(macs["10.0.0.2"]);
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByText("By the tables, a packet takes this path").waitFor();
    assert.deepEqual(await page.locator("section.grid.hops tbody td:first-child").allTextContents(), ["s1", "s2"]);
  });

  await t.test("rates and programs", async () => {
    await visit("programs");
    await page.locator("section.grid.programs tr", { hasText: "routing" }).waitFor();
    await page.locator("section.grid.settings tr", { hasText: "listen" }).waitFor();
    await visit("rates");
    await until(page, () => document.querySelectorAll("section.grid.switches tbody tr").length === 3);
    assert.deepEqual(await faults(page), []);
  });

  await t.test("events: what has happened in this test, in order", async () => {
    await page.keyboard.press("Escape");
    await visit("events");
    await page.locator("tr.event").first().waitFor();
    const kinds = (await page.locator("tr.event td:nth-child(2)").allTextContents()).reverse();
    const wanted = ["link down", "link up", "refused", "role changed"];
    const found = wanted.map((kind) => kinds.indexOf(kind));
    assert.ok(found.every((place, index) => place >= 0 && (index === 0 || found[index - 1] < place)), String(kinds));
    await page.locator("tr.refused", { hasText: "s1 has refused a message: OFPBAC_BAD_OUT_GROUP, its 1st refusal" }).waitFor();
  });

  await t.test("a switch that ends is shown as gone", async () => {
    await visit("network");
    await until(page, hasHeads, ["Switches (3)"]);
    ovs.switch.kill("SIGTERM");
    await until(page, says, "3 switches gone");
  });
});
