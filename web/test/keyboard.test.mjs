// Keyboard operation of everything: this file moves no mouse.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, network, open, places, says, until } from "./lab.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** More elements than a view has. */
const MOST_TABS = 100;

/** Returns the name of the focused element, and whether the focus is visible. */
function focus() {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
  const { width, height } = element.getBoundingClientRect();
  const name = element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent;
  const isSeen = outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2 && outlineColor !== "rgba(0, 0, 0, 0)" && width > 1 && height > 1;
  return { name: name.trim(), isSeen };
}

/** Presses a key, which must move the focus visibly; returns the name of the focused element. */
async function step(page, key = "Tab") {
  await page.keyboard.press(key);
  const { name, isSeen } = await page.evaluate(focus);
  assert.ok(isSeen, `'${name}' does not show that it has the focus`);
  return name;
}

/** Presses Tab, or another key, until the element of this name has the focus. */
async function tabTo(page, name, key = "Tab") {
  const passed = [];
  while (passed.length < MOST_TABS) {
    const found = await step(page, key);
    if (name.test(found)) return;
    passed.push(found);
  }
  assert.fail(`no ${name} among ${passed.join(", ")}`);
}

/** Confirms a dialog, whose initial focus is on the harmless button. */
async function agree(page, effect, verb) {
  await page.getByRole("dialog").getByText(effect).waitFor();
  assert.equal((await page.evaluate(focus)).name, "Cancel");
  assert.equal(await step(page), verb);
  await page.keyboard.press("Enter");
}

/** Opens a ring of three switches, once all links are known. */
async function ring(t) {
  const { url } = await network(t, "ring,3", "discovery,hosts,routing");
  const page = await open(browser, t, url);
  await until(page, says, "3 switches, 3 links");
  return page;
}

const viewport = (page) => page.evaluate(() => document.querySelector(".canvas").picture.viewport);
const heading = (page, text) => page.locator(".details h2", { hasText: text }).waitFor();

test("Tab goes through all that there is, and each shows that it has the focus", async (t) => {
  const page = await ring(t);
  const names = [];
  for (let place = 0; place < 16; place += 1) names.push(await step(page));
  assert.deepEqual(names, [
    "Skip to the content",
    ...["Network", "Path", "Rates", "Programs", "Events"],
    "The network: 3 switches, 3 links, 0 hosts",
    ...["hosts", "Fit", "Zoom in", "Zoom out", "Arrange"],
    "Search switches, links and hosts",
    "Emulated network",
    ...["s1OpenFlow 1.3", "s2OpenFlow 1.3"],
  ]);
});

test("arrows, plus, minus and nought move the picture", async (t) => {
  const page = await ring(t);
  await tabTo(page, /^The network/);
  const first = await viewport(page);
  const after = async (key) => {
    await page.keyboard.press(key);
    return viewport(page);
  };
  const moved = { x: first.pan.x - 60, y: first.pan.y };
  assert.deepEqual(await after("ArrowRight"), { zoom: first.zoom, pan: moved });
  assert.deepEqual(await after("ArrowDown"), { zoom: first.zoom, pan: { x: moved.x, y: moved.y - 60 } });
  assert.deepEqual(await after("ArrowLeft"), { zoom: first.zoom, pan: { x: first.pan.x, y: moved.y - 60 } });
  assert.deepEqual(await after("ArrowUp"), first);
  const { zoom } = await after("+");
  assert.equal((zoom / first.zoom).toFixed(3), "1.250");
  assert.equal(((await after("-")).zoom / zoom).toFixed(3), "0.800");
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(await after("0"), first);
});

test("a switch is picked by Enter, moved by Shift and arrows, and let go by Escape", async (t) => {
  const page = await ring(t);
  const [id] = Object.keys(await places(page)).sort();
  await tabTo(page, /^s1OpenFlow/);
  await page.keyboard.press("Enter");
  await heading(page, "s1");
  await tabTo(page, /^The network/, "Shift+Tab");
  const [placed, seen] = [await places(page), await viewport(page)];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(`Shift+${key}`);
  const moved = { ...placed, [id]: { x: placed[id].x + 40, y: placed[id].y + 20 } };
  assert.deepEqual(await places(page), moved);
  assert.deepEqual(await viewport(page), seen);
  await page.keyboard.press("Escape");
  await page.locator(".details").waitFor({ state: "hidden" });
  // Without a selection, they move the picture as without Shift.
  await page.keyboard.press("Shift+ArrowRight");
  assert.deepEqual(await places(page), moved);
  assert.equal((await viewport(page)).pan.x, seen.pan.x - 60);
  await page.reload();
  await until(page, says, "3 switches, 3 links");
  assert.deepEqual(await places(page), moved);
});

test("an entry is added", async (t) => {
  const page = await ring(t);
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
  await tabTo(page, /^s2OpenFlow/);
  await page.keyboard.press("Enter");
  await heading(page, "s2");
  await tabTo(page, /^Tables and ports$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.locator(".view.switch").waitFor();
  await tabTo(page, /^Change this switch$/);
  await page.keyboard.press("Enter");
  await tabTo(page, /^Entry$/);
  await page.keyboard.type("priority=7,in_port=1,actions=drop");
  await tabTo(page, /^Send/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.match((await page.evaluate(focus)).name, /^Send/);
  await page.keyboard.press("Enter");
  await agree(page, "this adds the entry priority=7,in_port=1,actions=drop", "Add");
  await page.getByText("The switch has confirmed it.").waitFor();
  await page.locator("section.grid.entries tr", { hasText: "in_port=1" }).waitFor();
  assert.equal(posts.length, 1, "Escape sends nothing");
});

test("a link is cut, and repaired", async (t) => {
  const page = await ring(t);
  await tabTo(page, /^s1:\d – s2:\d/);
  await page.keyboard.press("Enter");
  await heading(page, "s1:");
  await tabTo(page, /^Cut this link/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await agree(page, "this cuts it", "Cut");
  await until(page, says, "1 link down");
  // The button with the other text is still the same element, with the focus.
  await page.getByRole("button", { name: "Repair this link…" }).waitFor();
  assert.match((await page.evaluate(focus)).name, /^Repair this link/);
  await page.keyboard.press("Enter");
  await agree(page, "this repairs it", "Repair");
  await until(page, () => !document.querySelector(".canvas").getAttribute("aria-label").includes("down"));
});
