// The control programs that run.

import { el, setText } from "../dom";
import { clipped, counted, scaled } from "../text";
import { Grid } from "./grid";
import type { Context, View } from "./view";

export function programsView(context: Context): View {
  const { live, rates } = context;
  const table = new Grid("Programs", ["Program", "Packet-ins a second", "Median", "99th percentile"]);
  const panics = el("p");
  const element = el("div", { class: "view plain" }, table.element, panics);

  function update(): void {
    const last = rates.points.at(-1);
    const timed = new Map((last?.programs ?? []).map((program) => [program.name, program]));
    const ms = (value: number | null | undefined) => (typeof value === "number" ? `${value.toPrecision(2)} ms` : "–");
    table.show(
      [...new Set([...live.network.programs, ...timed.keys()])].map((name) => {
        const rate = timed.get(name);
        const packetIns = rate === undefined ? "–" : scaled(rate.packetInsPerSecond, "/s");
        return { key: name, cells: [clipped(name), packetIns, ms(rate?.p50Ms), ms(rate?.p99Ms)] };
      }),
    );
    const count = last?.panics ?? 0;
    setText(panics, last === undefined ? "" : count === 0 ? "No program has panicked." : `Programs have panicked: ${counted(count, "time")}.`);
    panics.classList.toggle("problem", count > 0);
  }

  const unwatch = rates.watch(update);
  return { element, update, close: () => void unwatch() };
}
