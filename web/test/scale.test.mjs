// A network of a thousand switches: the time until it is shown, and the frames per second while loads change. The assertions are
// far from the goals, since machines that run tests are busy; the diagnostics have the figures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dpid } from "./fake.mjs";
import { atEnd, browse, open, places, until } from "./lab.mjs";
import { HOSTS, change, large, picturesPerSecond, untilNodes } from "./large.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

test("a thousand switches", async (t) => {
  const fake = large();
  const url = await fake.start(t);
  const page = await open(browser, t, url);
  await untilNodes(page, "c:", 10);
  const first = await page.evaluate(() => performance.now());
  t.diagnostic(`first picture of 1,000 switches, ${fake.lists.links.length / 2} links, ${HOSTS} hosts: ${first.toFixed(0)} ms`);
  let round = 0;
  const timer = setInterval(() => change(fake, (round += 1)), 1000);
  atEnd(t, () => clearInterval(timer));
  const clustered = await picturesPerSecond(page, 3);
  await page.getByLabel("clusters").uncheck();
  const whole = await untilNodes(page, "s:", 1000);
  t.diagnostic(`the same without clusters: ${whole.toFixed(0)} ms`);
  const frames = await picturesPerSecond(page, 3);
  t.diagnostic(`while a tenth of the links change load each second: ${clustered.toFixed(1)} pictures a second; without clusters ${frames.toFixed(1)}`);
  assert.ok(Math.min(clustered, frames) > 2, `${clustered} and ${frames} pictures a second`);
});

test("a large network is drawn in clusters, which open, and which changes of the network leave as they are", async (t) => {
  const fake = large();
  const page = await open(browser, t, await fake.start(t));
  await untilNodes(page, "c:", 10);
  const placed = await places(page);
  const clusters = Object.keys(placed).filter((id) => id.startsWith("c:"));
  // About the square root of the number of switches, and no individual switch.
  assert.ok(clusters.length >= 20 && clusters.length <= 60, `${clusters.length} clusters`);
  assert.equal(Object.keys(placed).length, clusters.length);
  const labels = await page.evaluate(() => document.querySelector(".canvas").picture.labels);
  const others = Object.values(labels).map((label) => Number(/ \+(\d+)/.exec(label)[1]));
  assert.equal(others.reduce((sum, count) => sum + count + 1, 0), 1000);
  // A lost link moves nothing, and the description reports it.
  const [gone] = fake.lists.links;
  fake.lists.links = fake.lists.links.slice(2);
  fake.tell("link_down", { src: ofEnd(gone.from), dst: ofEnd(gone.to) });
  await until(page, () => document.querySelector(".canvas").getAttribute("aria-label").includes("1 link down"));
  assert.deepEqual(await places(page), placed);
  // The selection is drawn: its cluster opens, and the other clusters stay.
  await page.keyboard.press("/");
  await page.keyboard.type(dpid(500));
  await page.keyboard.press("Enter");
  await untilNodes(page, `s:${dpid(500)}`, 1);
  const opened = await places(page);
  const kept = clusters.filter((id) => opened[id] !== undefined);
  assert.equal(kept.length, clusters.length - 1);
  kept.forEach((id) => assert.deepEqual(opened[id], placed[id]));
  const [missing] = clusters.filter((id) => opened[id] === undefined);
  assert.equal(Object.keys(opened).length - kept.length, 1 + Number(/ \+(\d+)/.exec(labels[missing])[1]));
  // All clusters close again, and open by a click.
  await page.getByLabel("clusters").uncheck();
  await untilNodes(page, "s:", 1000);
  await page.getByLabel("clusters").check();
  await until(page, (count) => Object.keys(document.querySelector(".canvas").picture.places).length === count, clusters.length);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Fit" }).click();
  const at = await page.evaluate((id) => document.querySelector(".canvas").picture.rendered(id), clusters[0]);
  await page.locator(".canvas").click({ position: at });
  await untilNodes(page, "s:", 2);
});

/** Returns an end of a link in the form of events. */
function ofEnd(end) {
  const [id, port] = end.split(":");
  return { dpid: id, port_no: Number(port).toString(16).padStart(8, "0") };
}
