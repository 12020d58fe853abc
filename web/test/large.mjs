// A fake network of a thousand switches, and measurements of the page with it, for its tests and its figures.

import { Fake, aHost, aLink, aPort, aSwitch, dpid } from "./fake.mjs";
import { until } from "./lab.mjs";

const SIDE = { x: 40, y: 25 };
/** The number of hosts. */
export const HOSTS = 5_000;

/** Creates a grid with diagonals and longer links: 1,000 switches, about 4,000 links. */
export function large() {
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

/** Gives a tenth of the ports another load from now on. */
export function change(fake, round) {
  for (const { ports } of fake.lists.ports) {
    for (const port of ports) {
      const isChanged = (Number(port.port) + round) % 10 === 0;
      port.sent_bytes += isChanged ? 100_000_000 : 1_000_000;
    }
  }
}

/** Returns the number of frames per second that the page draws, over `seconds`. */
export async function picturesPerSecond(page, seconds) {
  const count = (ms) =>
    new Promise((resolve) => {
      let pictures = 0;
      const end = performance.now() + ms;
      const frame = () => {
        pictures += 1;
        if (performance.now() < end) requestAnimationFrame(frame);
        else resolve(pictures / (ms / 1000));
      };
      requestAnimationFrame(frame);
    });
  return page.evaluate(count, seconds * 1000);
}

/** Waits until the picture has at least `least` nodes of a kind, `s:` for switches and `c:` for clusters; returns the time
 * that this took. */
export function untilNodes(page, kind, least) {
  const hasNodes = ([kind, least]) => {
    const places = document.querySelector(".canvas")?.picture?.places ?? {};
    return Object.keys(places).filter((id) => id.startsWith(kind)).length >= least;
  };
  return until(page, hasNodes, [kind, least]);
}
