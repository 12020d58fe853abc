// The page of `urtica net` and `urtica demo --web`: the switches that run in the program, and changes of them.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { Program, browse, isLive, items, network, open, pingAll, says, until } from "./lab.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

const SWITCH = "#/switch/0000000000000001";

/** Starts a switch with two hosts that the controller knows, and opens its page. */
async function single(t) {
  const { url } = await network(t, "single,2", "hub");
  const page = await open(browser, t, `${url}${SWITCH}`);
  await page.locator("section.grid.ports tbody tr").first().waitFor();
  return { url, page };
}

async function post(url, path, body) {
  const response = await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(body) });
  assert.ok(response.ok, await response.text());
}

async function agree(page, effect, verb) {
  await page.getByRole("dialog").getByText(effect).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: verb }).click();
}

test("an entry is deleted, by its match and by its priority as well", async (t) => {
  const { url, page } = await single(t);
  for (const priority of [5, 6, 7]) await post(url, "api/v1/switches/1/flows", { flow: `priority=${priority},in_port=1,actions=output:2` });
  const send = async (command, flow, effect) => {
    await page.getByLabel("Command").selectOption(command);
    await page.getByLabel("Entry", { exact: true }).fill(flow);
    await page.getByRole("button", { name: "Send…" }).click();
    await agree(page, effect, "Delete");
  };
  const arePriorities = (expected) =>
    [...document.querySelectorAll("section.grid.entries tbody tr")]
      .filter((row) => row.textContent.includes("in_port=1"))
      .map((row) => row.cells[1].textContent)
      .sort()
      .join() === expected;
  await until(page, arePriorities, "5,6,7");
  await page.getByText("Change this switch").click();
  await send("delete_strict", "priority=6,in_port=1", "deletes the entry with just this match and priority: priority=6,in_port=1.");
  await until(page, arePriorities, "5,7");
  await send("delete", "in_port=1", "deletes all entries that in_port=1 matches.");
  await until(page, arePriorities, "");
});

test("groups and meters are shown in ovs-ofctl's words, and go when they are deleted", async (t) => {
  const { url, page } = await single(t);
  const bucket = { actions: [{ type: "OUTPUT", port: 2 }] };
  await post(url, "stats/groupentry/add", { dpid: 1, type: "ALL", group_id: 7, buckets: [bucket] });
  await post(url, "stats/meterentry/add", { dpid: 1, meter_id: 3, flags: "KBPS", bands: [{ type: "DROP", rate: 1000 }] });
  await page.locator("section.grid.groups td", { hasText: /^group_id=7,type=all,bucket=actions=output:2$/ }).waitFor();
  await page.locator("section.grid.meters td", { hasText: /^meter=3 kbps bands=type=drop rate=1000$/ }).waitFor();
  await post(url, "stats/groupentry/delete", { dpid: 1, group_id: 7 });
  await page.locator("section.grid.groups").waitFor({ state: "hidden" });
});

test("another role is asked for, and shown where it is another", async (t) => {
  const { page } = await single(t);
  const ask = async (role, effect) => {
    await page.getByLabel("Role of this controller").selectOption(role);
    await page.getByRole("button", { name: "Ask for it…" }).click();
    await agree(page, effect, "Ask");
    const confirmed = page.getByText("The switch has confirmed it.");
    await confirmed.or(page.locator("#flow-problem:not([hidden])")).waitFor();
    assert.equal(await page.locator("#flow-problem").textContent(), "", `no refusal to be ${role}`);
  };
  await page.getByText("Change this switch").click();
  for (const [role, effect] of [
    ["secondary", "this controller asks to be secondary. It may only read"],
    ["primary", "this controller asks to be primary. Other controllers that are primary become secondary."],
  ]) {
    await ask(role, effect);
    await page.getByRole("link", { name: "Network" }).click();
    await items(page, "Switches").locator(".note", { hasText: role }).waitFor();
    await page.goBack();
    await page.getByText("Change this switch").click();
  }
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator("tr.role_changed", { hasText: "is primary" }).waitFor();
  assert.match(await page.locator("tr.role_changed").first().textContent(), /the role at switch s1 is primary/);
});

test("a host's link is cut and repaired", async (t) => {
  const { program, url } = await network(t, "single,2", "discovery,hosts,l2");
  await pingAll(program);
  const page = await open(browser, t, url);
  await items(page, "Hosts").nth(1).waitFor();
  await items(page, "Hosts").filter({ hasText: "10.0.0.2" }).click();
  await page.getByRole("button", { name: "Cut its link…" }).click();
  await agree(page, "Link h2 – s1:2: this cuts it", "Cut");
  await until(page, says, "1 port down");
  await page.getByText("Emulated network").click();
  await page.getByRole("list", { name: "What is cut or stopped" }).getByRole("button", { name: "Repair this link" }).click();
  await agree(page, "Link h2 – s1:2: this repairs it", "Repair");
  await until(page, () => !document.querySelector(".canvas").getAttribute("aria-label").includes("down"));
});

test("a read-only token sees an emulated network without anything that acts on it", async (t) => {
  const file = `${mkdtempSync(`${tmpdir()}/urtica-web-`)}/tokens`;
  const [reads, changes] = ["0123456789abcdef", "fedcba9876543210"];
  writeFileSync(file, `read-only ${reads}\n${changes}\n`, { mode: 0o600 });
  const { url } = await network(t, "ring,3", "discovery,hosts,routing", ["--northbound-tokens", file]);
  const picked = async (token) => {
    const page = await open(browser, t, url, { expected: [/401/] });
    await page.getByLabel("Bearer token").fill(token);
    await page.keyboard.press("Enter");
    await until(page, says, "3 switches, 3 links");
    await items(page, "Links").first().click();
    await page.locator(".details dd", { hasText: "up" }).first().waitFor();
    return page;
  };
  const controls = (page) => [page.getByText("Emulated network"), page.getByRole("button", { name: "Cut this link…" })];
  const changing = await picked(changes);
  for (const control of controls(changing)) await control.waitFor();
  const reading = await picked(reads);
  // This page has read as much of the network as the other page, which shows the switches.
  await reading.waitForResponse(/ports$/).then((response) => response.finished());
  for (const control of controls(reading)) assert.equal(await control.isVisible(), false);
});

test("the demonstration is shown, and acted on", async (t) => {
  // The test must not open a browser.
  const program = new Program(t, ["demo", "--topology=ring,3", "--web=127.0.0.1:0"], { BROWSER: "true" });
  const [, url] = await program.says(/the network in a browser: (\S+)/);
  await program.says(/Select a link to cut it/);
  const page = await open(browser, t, url);
  await until(page, isLive);
  await until(page, says, "3 switches, 3 links, 3 hosts");
  await items(page, "Links").first().click();
  await page.getByRole("button", { name: "Cut this link…" }).click();
  await agree(page, "this cuts it", "Cut");
  await until(page, says, "1 link down");
});
