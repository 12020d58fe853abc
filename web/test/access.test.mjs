// Accessibility of dialogs and panels in the views: axe finds no serious problems there, either.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dpid, small } from "./fake.mjs";
import { browse, isLive, open, until } from "./lab.mjs";
import { faults, visit } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** Checks that axe finds no serious problem, dark or light. */
async function check(page, where) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await faults(page), [], `${where}, ${colorScheme}`);
  }
}

/** Returns an emulated network with a cut link. */
function emulated() {
  const fake = small();
  fake.emulation = {
    switches: [1, 2].map((id) => ({ name: `s${id}`, id: dpid(id), running: true })),
    hosts: [1, 2].map((id) => ({ name: `h${id}`, mac: `02:00:00:00:00:0${id}`, ipv4: `10.0.0.${id}` })),
    links: [{ a: `${dpid(1)}:1`, b: `${dpid(2)}:1`, up: false }],
  };
  return fake;
}

test("the emulated network's controls, and the question before an act", async (t) => {
  const page = await open(browser, t, await emulated().start(t));
  await until(page, isLive);
  await page.getByText("Emulated network").click();
  await page.getByRole("button", { name: "Repair this link" }).waitFor();
  await check(page, "Emulated network");
  await page.getByRole("button", { name: "Ping all…" }).click();
  await page.getByRole("dialog").waitFor();
  await check(page, "a question");
});

test("the controls that change a switch, and what it refuses", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t), { expected: [/404/] });
  await until(page, isLive);
  await visit(page, `switch/${dpid(1)}`);
  await page.getByText("Change this switch").click();
  await check(page, "Change this switch");
  await page.getByRole("button", { name: "Send…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
  await page.locator("#flow-problem", { hasText: "there is no such thing" }).waitFor();
  await check(page, "a refusal");
});

test("the banner while the controller does not answer", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t), { expected: [/Failed to load resource/] });
  await until(page, isLive);
  await page.route("**/api/**", (route) => route.abort());
  fake.hangUp();
  await page.locator("#banner", { hasText: "does not answer" }).waitFor();
  await check(page, "not connected");
  await visit(page, `switch/${dpid(1)}`);
  await check(page, "a switch, not connected");
});

test("a switch that is gone", async (t) => {
  const fake = small();
  const page = await open(browser, t, await fake.start(t), { expected: [/404/] });
  await until(page, isLive);
  fake.lists.switches = fake.lists.switches.slice(1);
  fake.tell("switch_down", { dpid: dpid(1), ports: [] });
  await visit(page, `switch/${dpid(1)}`);
  await page.locator(".stale section.grid.ports").waitFor();
  await check(page, "a switch that is gone");
});

test("the question for a token", async (t) => {
  const fake = small();
  const refuse = (route) => route.fulfill({ status: 401, json: { error: "this interface wants a token" } });
  const prepare = (page) => page.route("**/api/**", refuse);
  const page = await open(browser, t, await fake.start(t), { expected: [/401/], prepare });
  await page.getByRole("dialog").getByText("this interface wants a token").waitFor();
  await check(page, "locked");
});
