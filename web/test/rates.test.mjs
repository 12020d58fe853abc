// Rates that the page computes from counters.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dpid, small } from "./fake.mjs";
import { browse, isLive, items, open, until } from "./lab.mjs";
import { visit } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** Packet-ins per second of each switch, and the bytes that wait for it. */
const SWITCHES = [
  { id: dpid(1), rate: 1_200, queued: 0 },
  { id: dpid(2), rate: 3_400, queued: 65_536 },
];

/** The shares of packet-ins that the program handles within these numbers of seconds. */
const TIMES = [
  ["0.0001", 0.6],
  ["0.001", 0.9],
  ["0.01", 1],
  ["+Inf", 1],
];

/** Returns the metrics of such a controller after some seconds. */
function metricsAfter(seconds) {
  const total = SWITCHES.reduce((sum, { rate }) => sum + rate, 0) * seconds;
  const lines = SWITCHES.flatMap(({ id, rate, queued }) => [
    `urtica_switch_packet_ins_total{dp_id="${id}",dp_name="s"} ${Math.round(rate * seconds)}`,
    `urtica_switch_queued_bytes{dp_id="${id}",dp_name="s"} ${queued}`,
  ]);
  const buckets = TIMES.map(([le, share]) => `urtica_packet_in_duration_seconds_bucket{program="routing",le="${le}"} ${Math.round(share * total)}`);
  return ["# a comment", ...lines, ...buckets, "urtica_shard_handler_panics_total 2", "urtica_background_panics_total 1", ""].join("\n");
}

/** Returns the values of the plots, and the rows of the table. */
function shown() {
  const now = [...document.querySelectorAll(".plot h3 .about")].map((text) => text.textContent);
  const rows = [...document.querySelectorAll("section.grid.switches tbody tr")];
  return JSON.stringify({ now, rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)) });
}

// Both are timed: a late reading shows another rate, but the next reading shows the right one.
const untilShown = (page, expected) => until(page, new Function("expected", `return (${shown})() === expected`), JSON.stringify(expected));

test("rates are what counters grew by: of all switches, of the one that is picked, and of programs", async (t) => {
  const fake = small();
  fake.controller = { version: "1.2.3", running_seconds: 9, programs: [{ name: "routing", running_seconds: 61 }], panics: [], settings: [] };
  fake.lists.programs = ["routing"];
  const began = performance.now();
  fake.metrics = () => metricsAfter((performance.now() - began) / 1000);
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  await visit(page, "rates");
  const latency = "median 0.10 ms · 99th percentile 10 ms";
  const rows = [
    ["right", "3.4 k/s", "65.5 kB"],
    ["left", "1.2 k/s", "0 B"],
  ];
  await untilShown(page, { now: ["now 4.6 k/s", latency, "now 65.5 kB"], rows });
  await page.getByText("Of all switches", { exact: true }).waitFor();
  assert.equal(await page.locator(".plot canvas").count(), 3);

  await visit(page, "network");
  await items(page, "Switches").filter({ hasText: "left" }).click();
  await visit(page, "rates");
  await page.getByText("Of switch left", { exact: true }).waitFor();
  await untilShown(page, { now: ["now 1.2 k/s", latency, "now 0 B"], rows });
  await page.getByRole("button", { name: "All switches" }).click();
  await untilShown(page, { now: ["now 4.6 k/s", latency, "now 65.5 kB"], rows });

  await visit(page, "programs");
  const cells = ["routing", "1 min", "4.6 k/s", "0.10 ms", "10 ms"];
  const has = (cells) => [...document.querySelector("section.grid.programs tbody tr").cells].every((cell, place) => cell.textContent === cells[place]);
  await until(page, has, cells);
  await page.getByText("Programs have panicked: 3 times.").waitFor();
});
