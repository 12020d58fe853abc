// A network of a thousand switches: how soon it is there, and how many pictures a second it makes while loads change. What is asserted is
// far from what is aimed at, since machines that run tests are busy; the diagnostics have the figures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Fake, aHost, aLink, aPort, aSwitch, dpid } from "./fake.mjs";
import { atEnd, browse, open, until } from "./lab.mjs";

const SIDE = { x: 40, y: 25 };
const HOSTS = 5_000;

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** A grid with diagonals and longer links: 1,000 switches, about 4,000 links. */
function large() {
  const fake = new Fake();
  const count = SIDE.x * SIDE.y;
  const at = (x, y) => 1 + ((x + SIDE.x) % SIDE.x) + SIDE.x * ((y + SIDE.y) % SIDE.y);
  const ports = Array.from({ length: count + 1 }, () => []);
  const links = [];
  const join = (a, b) => {
    const ends = [a, b].map((id) => {
      ports[id].push(aPort(ports[id].length + 1, `s${id}-eth${ports[id].length + 1}`));
      return `${dpid(id)}:${ports[id].length}`;
    });
    links.push(...aLink(...ends));
  };
  for (let x = 0; x < SIDE.x; x += 1) {
    for (let y = 0; y < SIDE.y; y += 1) {
      for (const [right, down] of [[1, 0], [0, 1], [1, 1], [2, 0]]) join(at(x, y), at(x + right, y + down));
    }
  }
  fake.lists = {
    switches: Array.from({ length: count }, (_, place) => aSwitch(place + 1)),
    links,
    hosts: Array.from({ length: HOSTS }, (_, place) => aHost(place, `${dpid(1 + (place % count))}:99`, `10.0.${place >> 8}.${place & 255}`)),
    ports: Array.from({ length: count }, (_, place) => ({ switch: dpid(place + 1), age_seconds: 0, ports: ports[place + 1] })),
    programs: ["routing"],
  };
  return fake;
}

/** Has a tenth of the ports carry another load from now on. */
function change(fake, round) {
  for (const { ports } of fake.lists.ports) {
    for (const port of ports) {
      const isChanged = (Number(port.port) + round) % 10 === 0;
      port.sent_bytes += isChanged ? 100_000_000 : 1_000_000;
    }
  }
}

test("a thousand switches", async (t) => {
  const fake = large();
  const url = await fake.start(t);
  const page = await open(browser, t, url);
  await until(page, () => Object.keys(document.querySelector(".canvas")?.picture?.places ?? {}).length >= 1000);
  const first = await page.evaluate(() => performance.now());
  t.diagnostic(`first picture of 1,000 switches, ${fake.lists.links.length / 2} links, ${HOSTS} hosts: ${first.toFixed(0)} ms`);
  let round = 0;
  const timer = setInterval(() => change(fake, (round += 1)), 1000);
  atEnd(t, () => clearInterval(timer));
  const frames = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let count = 0;
        const end = performance.now() + 10_000;
        const frame = () => {
          count += 1;
          if (performance.now() < end) requestAnimationFrame(frame);
          else resolve(count / 10);
        };
        requestAnimationFrame(frame);
      }),
  );
  t.diagnostic(`while a tenth of the links change load each second: ${frames.toFixed(1)} pictures a second`);
  assert.ok(frames > 2, `${frames} pictures a second`);
});
