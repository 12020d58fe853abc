// The picture: how it draws loads, roles and problems, and that it keeps positions.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { aHost, aLink, aPort, aSwitch, dpid, small } from "./fake.mjs";
import { browse, isLive, items, look, open, places, says, until, untilClass } from "./lab.mjs";
import { visit } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

const GIGABIT_IN_BYTES = 125e6;

/** Returns the element of a link between two switches' ports. */
const linkOf = (a, b) => `l:${dpid(a)}:${b}|${dpid(b)}:${a}`;
const LINK = `l:${dpid(1)}:1|${dpid(2)}:1`;

/** Ports whose counters grow as if they carried a share of a gigabit. */
class Counting {
  #bytes = 0;
  #sinceMs = performance.now();
  #share = 0;

  get bytes() {
    const now = performance.now();
    this.#bytes += (this.#share * GIGABIT_IN_BYTES * (now - this.#sinceMs)) / 1000;
    this.#sinceMs = now;
    return Math.round(this.#bytes);
  }

  carry(share) {
    void this.bytes;
    this.#share = share;
  }
}

/** Returns a colour of style.css in the canvas's form. */
async function colour(page, name) {
  const hex = await page.evaluate((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(), name);
  return `rgb(${[1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(",")})`;
}

test("links have the colour and the width of their load, which their ports' counters tell", async (t) => {
  const fake = small();
  const counting = new Counting();
  fake.lists.ports = () => {
    const sent_bytes = counting.bytes;
    return [1, 2].map((id) => ({ switch: dpid(id), age_seconds: 0, ports: [aPort(1, "p", { sent_bytes })] }));
  };
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  const note = (pattern) => items(page, "Links").locator(".note", { hasText: pattern }).waitFor();
  await note(/^0 bit\/s \(0 %\)$/);
  const widths = [];
  for (const [level, percent] of [0, 10, 40, 70, 95].entries()) {
    counting.carry(percent / 100);
    await untilClass(page, LINK, `load-${level}`);
    const drawn = await look(page, LINK);
    assert.deepEqual(drawn.classes.filter((name) => name.startsWith("load-")), [`load-${level}`]);
    assert.equal(drawn["line-color"], await colour(page, `--load-${level}`));
    widths.push(Number.parseFloat(drawn.width));
  }
  assert.ok(widths.every((width, level) => level === 0 || width > widths[level - 1]), `widths ${widths}`);
  // A late reading shows another rate, but the next reading shows the right one.
  await note(/^9\d\d Mbit\/s \(9\d %\)$/);
});

/** Returns four switches in a row, one of them gone, with roles, a port that is down, and a path from the first to the second. */
function row() {
  const fake = small();
  const hosts = [aHost(1, `${dpid(1)}:9`, "10.0.0.1"), aHost(2, `${dpid(2)}:9`, "10.0.0.2")];
  fake.lists = {
    switches: [aSwitch(1, "left", "primary"), aSwitch(2, "right", "secondary"), aSwitch(3, "third"), aSwitch(4, "fourth")],
    links: [[1, 2], [2, 3], [3, 4]].flatMap(([a, b]) => aLink(`${dpid(a)}:${b}`, `${dpid(b)}:${a}`)),
    hosts,
    ports: [{ switch: dpid(3), age_seconds: 0, ports: [aPort(2, "p2"), aPort(4, "p4", { up: false })] }],
    programs: ["routing"],
    paths: [
      { switch: dpid(1), in_port: "9", out_port: "2" },
      { switch: dpid(2), in_port: "1", out_port: "9" },
    ],
    trace: { delivered: false, unfinished: false, hops: [], packet: "arp" },
  };
  return fake;
}

test("roles, ports that are down and what is gone are drawn apart", async (t) => {
  const fake = row();
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  await until(page, says, "4 switches");
  const border = async (id) => {
    const { classes, "border-style": style, "border-width": width } = await look(page, `s:${dpid(id)}`);
    return [classes.find((name) => ["primary", "equal", "secondary"].includes(name)), style, Number.parseFloat(width)];
  };
  assert.deepEqual(await border(1), ["primary", "double", 5]);
  assert.deepEqual(await border(2), ["secondary", "dashed", 2]);
  assert.deepEqual(await border(4), ["equal", "solid", 2]);
  const labels = await page.evaluate(() => document.querySelector(".canvas").picture.labels);
  assert.match(labels[`s:${dpid(3)}`], /third\u2069 ↓1$/);
  await untilClass(page, `s:${dpid(3)}`, "ports-down");
  assert.ok(!(await look(page, `s:${dpid(4)}`)).classes.includes("ports-down"));

  fake.lists.switches = fake.lists.switches.slice(0, 3);
  fake.lists.links = fake.lists.links.slice(0, 4);
  fake.tell("switch_down", { dpid: dpid(4), ports: [] });
  await untilClass(page, `s:${dpid(4)}`, "gone");
  await untilClass(page, linkOf(3, 4), "gone");
  const [gone, link] = [await look(page, `s:${dpid(4)}`), await look(page, linkOf(3, 4))];
  const bad = await colour(page, "--bad");
  assert.deepEqual([gone["border-style"], gone["border-color"]], ["dashed", bad]);
  assert.deepEqual([link["line-style"], link["line-color"]], ["dashed", bad]);
  assert.equal((await look(page, linkOf(1, 2)))["line-style"], "solid");
});

test("what a search does not find is dimmed, and a path is marked until it is hidden", async (t) => {
  const fake = row();
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  const dimmed = async () => {
    const ids = await page.evaluate(() => document.querySelector(".canvas").picture.ids);
    const looks = await Promise.all(ids.map((id) => look(page, id)));
    return ids.filter((_, place) => Number(looks[place].opacity) < 0.5).sort();
  };
  assert.deepEqual(await dimmed(), []);
  await page.getByLabel("Search switches, links and hosts").fill("10.0.0.1");
  await untilClass(page, `s:${dpid(2)}`, "dimmed");
  const [first, second] = fake.lists.hosts.map(({ mac }) => mac);
  const others = [2, 3, 4].map((id) => `s:${dpid(id)}`);
  const links = [[1, 2], [2, 3], [3, 4]].map(([a, b]) => linkOf(a, b));
  assert.deepEqual(await dimmed(), [`a:${second}`, `h:${second}`, ...links, ...others]);
  await page.getByLabel("Search switches, links and hosts").fill("");
  await untilClass(page, `s:${dpid(2)}`, "dimmed", false);
  assert.deepEqual(await dimmed(), []);

  await visit(page, "path");
  await page.getByLabel("From host").selectOption(first);
  await page.getByLabel("to host").selectOption(second);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByRole("button", { name: "Show in the picture" }).click();
  const marked = [`s:${dpid(1)}`, `s:${dpid(2)}`, linkOf(1, 2)];
  for (const id of marked) await untilClass(page, id, "path");
  for (const id of [`s:${dpid(3)}`, linkOf(2, 3)]) await untilClass(page, id, "path", false);
  const path = await colour(page, "--path");
  assert.equal((await look(page, linkOf(1, 2)))["line-color"], path);
  assert.equal((await look(page, `s:${dpid(1)}`))["border-color"], path);
  await page.getByRole("button", { name: "Hide the path" }).click();
  for (const id of marked) await untilClass(page, id, "path", false);
});

test("a switch that is dragged stays there, in the next page too, until all are arranged anew", async (t) => {
  const fake = row();
  const page = await open(browser, t, await fake.start(t));
  const areDrawn = () => Object.keys(document.querySelector(".canvas").picture.places).length === 6;
  await until(page, areDrawn);
  const placed = await places(page);
  const id = `s:${dpid(3)}`;
  await drag(page, id, 70, 40);
  const dragged = await places(page);
  assert.ok(dragged[id].x > placed[id].x && dragged[id].y > placed[id].y, JSON.stringify([placed[id], dragged[id]]));
  for (const other of [1, 2, 4]) assert.deepEqual(dragged[`s:${dpid(other)}`], placed[`s:${dpid(other)}`]);
  await page.reload();
  await until(page, areDrawn);
  assert.deepEqual(await places(page), dragged);
  await page.getByRole("button", { name: "Arrange" }).click();
  assert.deepEqual(await places(page), placed);
});

/** Drags an element of the picture by a number of pixels. */
async function drag(page, id, right, down) {
  const canvas = await page.locator(".canvas").boundingBox();
  const at = await page.evaluate((id) => document.querySelector(".canvas").picture.rendered(id), id);
  await page.mouse.move(canvas.x + at.x, canvas.y + at.y);
  await page.mouse.down();
  await page.mouse.move(canvas.x + at.x + right, canvas.y + at.y + down, { steps: 5 });
  await page.mouse.up();
}
