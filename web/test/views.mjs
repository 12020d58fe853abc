// The views of the page, and axe's findings in them.

import { readFileSync } from "node:fs";
import { until } from "./lab.mjs";

const AXE = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** The addresses of all views of a torus of nine switches. */
export const ADDRESSES = ["network", "path", "rates", "programs", "events", "switch/0000000000000101"];

/** Opens a view. */
export async function visit(page, address) {
  const shown = await page.evaluateHandle(() => document.querySelector(".view"));
  await page.evaluate((address) => (location.hash = `#/${address}`), address);
  const isAt = ([address, shown]) => location.hash === `#/${address}` && (document.querySelector(".view") !== shown || address === "network");
  await until(page, isAt, [address, shown]);
}

/** Returns axe's findings, with their impact: minor, moderate, serious or critical. */
export async function findings(page) {
  // Evaluated like a debugger's code, which no Content-Security-Policy restricts.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  return violations.map(({ id, impact, nodes }) => ({ impact, text: `${id}: ${nodes.map((node) => node.html).join(" ")}` }));
}

/** Returns axe's serious findings. */
export async function faults(page) {
  const found = await findings(page);
  return found.filter(({ impact }) => isSerious(impact)).map(({ text }) => text);
}

export function isSerious(impact) {
  return ["serious", "critical"].includes(impact);
}
