// The measurements of tools/web-figures in Chromium. Prints a line of JSON for each result.
//
//   node web/tools/measure.mjs first URL SWITCHES    the time until the first picture
//   node web/tools/measure.mjs cut URL               the time until the page shows that a link of an emulated network is cut
//   node web/tools/measure.mjs large                 a fake network of a thousand switches
//   node web/tools/measure.mjs axe URL               axe's findings in each view of a torus of nine switches
//   node web/tools/measure.mjs memory URL SECONDS    the memory of a tab, each minute, with 100 events a second
//   node web/tools/measure.mjs flap URL SECONDS      cuts and repairs links of an emulated network, 25 times a second
//   node web/tools/measure.mjs hold URL TABS         keeps TABS tabs open until standard input ends

import assert from "node:assert/strict";
import { HOSTS, change, large, picturesPerSecond, untilNodes } from "../test/large.mjs";
import { atEnd, browse, open, until } from "../test/lab.mjs";
import { ADDRESSES, findings, isSerious, visit } from "../test/views.mjs";

const EVENTS_PER_SECOND = 100;
const CHANGES_PER_SECOND = 25;
const MINUTE_MS = 60_000;

/** Runs the registered actions at the end, like a test's context. */
class Run {
  #ends = [];

  after(end) {
    this.#ends.push(end);
  }

  async end() {
    for (const end of this.#ends) await end();
  }
}

const isLive = () => document.body.dataset.status === "live";

function tell(result) {
  console.log(JSON.stringify(result));
}

async function first(browser, run, url, switches) {
  const page = await open(browser, run, url);
  await untilNodes(page, "s:", Number(switches));
  tell({ ms: await page.evaluate(() => performance.now()) });
}

async function cut(browser, run, url) {
  const page = await open(browser, run, url);
  await until(page, isLive);
  await until(page, () => document.querySelectorAll(".lists section:nth-child(2) .item").length > 0);
  // A new page is still busy with the events of discovery.
  await sleep(3000);
  const began = performance.now();
  const seen = until(page, () => document.querySelector(".canvas").getAttribute("aria-label").includes("1 link down"));
  await setLink(url, 0, false);
  await seen;
  tell({ ms: performance.now() - began });
}

/** Cuts or repairs a link of an emulated network. */
async function setLink(url, number, up) {
  const response = await fetch(`${url}api/v1/emulation/links/${number}`, { method: "POST", body: JSON.stringify({ up }) });
  assert.ok(response.ok, await response.text());
}

async function madeUp(browser, run) {
  const fake = large();
  const page = await open(browser, run, await fake.start(run));
  await untilNodes(page, "c:", 10);
  const firstMs = await page.evaluate(() => performance.now());
  let round = 0;
  const timer = setInterval(() => change(fake, (round += 1)), 1000);
  atEnd(run, () => clearInterval(timer));
  const clustered = await picturesPerSecond(page, 10);
  await page.getByLabel("clusters").uncheck();
  const wholeMs = await untilNodes(page, "s:", fake.lists.switches.length);
  const whole = await picturesPerSecond(page, 10);
  const counts = { switches: fake.lists.switches.length, links: fake.lists.links.length / 2, hosts: HOSTS };
  tell({ ...counts, firstMs, clustered, wholeMs, whole });
}

async function accessibility(browser, run, url) {
  const page = await open(browser, run, url);
  await until(page, isLive);
  let [views, serious, others] = [0, 0, 0];
  for (const address of ADDRESSES) {
    await visit(page, address);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const found = await findings(page);
      views += 1;
      serious += found.filter(({ impact }) => isSerious(impact)).length;
      others += found.filter(({ impact }) => !isSerious(impact)).length;
    }
  }
  tell({ views, serious, others });
}

async function memory(browser, run, url, seconds) {
  const page = await open(browser, run, url);
  await until(page, isLive);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const events = new Events(url);
  atEnd(run, () => events.close());
  await events.follow();
  const { links } = await (await fetch(`${url}api/v1/emulation`)).json();
  const began = performance.now();
  const isWanted = (seconds) => events.count < seconds * EVENTS_PER_SECOND;
  const changed = changeLinks(url, links.length, Number(seconds), isWanted);
  for (let minute = 0; minute * MINUTE_MS <= Number(seconds) * 1000; minute += 1) {
    await sleep(began + minute * MINUTE_MS - performance.now());
    tell({ minute, events: events.count, ...(await used(devtools)) });
  }
  await changed;
}

/** Returns a page's memory after garbage collection. */
async function used(devtools) {
  await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  const valueOf = (name) => metrics.find((metric) => metric.name === name).value;
  return { heapBytes: valueOf("JSHeapUsedSize"), nodes: valueOf("Nodes"), listeners: valueOf("JSEventListeners") };
}

/** Cuts and repairs links alternately; makes a change every `seconds` as long as `isWanted` returns `true`. */
async function changeLinks(url, links, seconds, isWanted) {
  const down = new Set();
  const began = performance.now();
  const passed = () => (performance.now() - began) / 1000;
  let turn = 0;
  while (passed() < seconds) {
    if (!isWanted(passed(), turn)) {
      await sleep(5);
      continue;
    }
    const number = turn % links;
    await setLink(url, number, down.has(number));
    if (!down.delete(number)) down.add(number);
    turn += 1;
  }
}

async function flap(_browser, _run, url, seconds) {
  const { links } = await (await fetch(`${url}api/v1/emulation`)).json();
  await changeLinks(url, links.length, Number(seconds), (passed, turn) => turn < passed * CHANGES_PER_SECOND);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

/** Counts the events of a controller. */
class Events {
  count = 0;
  #abort = new AbortController();

  constructor(url) {
    this.url = url;
  }

  async follow() {
    const response = await fetch(`${this.url}api/v1/events`, { signal: this.#abort.signal });
    assert.ok(response.ok);
    void this.#read(response.body).catch((error) => assert.equal(error.name, "AbortError"));
  }

  async #read(body) {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const part of body) {
      const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
      rest = lines.pop();
      this.count += lines.filter((line) => line.startsWith("event: ")).length;
    }
  }

  close() {
    this.#abort.abort();
  }
}

/** Opens each tab in its own browser, which shares no connections with the others. */
async function hold(browser, run, url, tabs) {
  for (let tab = 0; tab < Number(tabs); tab += 1) {
    const page = await open(browser, run, url, { expected: [/./] });
    await until(page, isLive);
  }
  tell({ tabs: Number(tabs) });
  await new Promise((resolve) => process.stdin.on("end", resolve).resume());
}

const WHAT = { first, cut, large: madeUp, axe: accessibility, memory, flap, hold };

const [what, ...given] = process.argv.slice(2);
assert.ok(WHAT[what] !== undefined, `expected one of ${Object.keys(WHAT).join(", ")}`);
const run = new Run();
const browser = what === "flap" ? null : await browse();
try {
  await WHAT[what](browser, run, ...given);
} finally {
  await run.end();
  await browser?.close();
}
