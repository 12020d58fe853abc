// Rates of the last ten minutes, of all switches or of the selected one.

import { button, el, setText } from "../dom";
import { clipped, scaled } from "../text";
import { Grid } from "./grid";
import { Plot } from "./plot";
import type { Context, View } from "./view";

export function ratesView(context: Context): View {
  const { live, selection, rates } = context;
  const packetIns = new Plot("Packet-ins a second", [{ name: "now", colour: "--load-2" }], (value) => scaled(value, "/s"));
  const latency = new Plot(
    "Time that programs take for a packet-in, of all switches",
    [
      { name: "median", colour: "--load-2" },
      { name: "99th percentile", colour: "--load-4", dash: [6, 4] },
    ],
    (ms) => `${ms.toPrecision(2)} ms`,
  );
  const queued = new Plot("Bytes that wait to be written to switches", [{ name: "now", colour: "--load-2" }], (value) => scaled(value, "B"));
  const table = new Grid("Switches", ["Switch", "Packet-ins a second", "Queued"]);
  const about = el("span", { class: "about" });
  const all = button("All switches", () => selection.pick(null));
  const element = el(
    "div",
    { class: "view plain" },
    el("div", { class: "bar" }, about, all),
    packetIns.element,
    latency.element,
    queued.element,
    table.element,
  );
  const plots = [packetIns, latency, queued];

  function update(): void {
    const { points } = rates;
    const id = selection.picked?.kind === "switch" ? selection.picked.key : null;
    const labelOf = (id: string) => clipped(live.network.switches.get(id)?.label ?? id);
    const of = (values: Map<string, number>) =>
      id === null ? [...values.values()].reduce((sum, value) => sum + value, 0) : (values.get(id) ?? null);
    const times = points.map((point) => point.at);
    const slowest = (pick: (program: { p50Ms: number | null; p99Ms: number | null }) => number | null) =>
      points.map((point) => {
        const known = point.programs.map(pick).filter((ms) => ms !== null);
        return known.length === 0 ? null : Math.max(...known);
      });
    packetIns.show(times, [points.map((point) => of(point.packetIns))]);
    latency.show(times, [slowest((program) => program.p50Ms), slowest((program) => program.p99Ms)]);
    queued.show(times, [points.map((point) => of(point.queuedBytes))]);
    const last = points.at(-1);
    const rows = [...(last?.packetIns ?? [])].sort(([, a], [, b]) => b - a).slice(0, 100);
    table.show(
      rows.map(([id, rate]) => {
        const cells = [labelOf(id), scaled(rate, "/s"), scaled(last?.queuedBytes.get(id) ?? 0, "B")];
        return { key: id, cells };
      }),
    );
    setText(about, points.length === 0 ? "The first figures are there in some seconds." : `Of ${id === null ? "all switches" : `switch ${labelOf(id)}`}`);
    all.hidden = id === null;
  }

  const unwatch = [selection.watch(update), rates.watch(update)];
  return {
    element,
    update,
    close() {
      unwatch.forEach((stop) => stop());
      plots.forEach((plot) => plot.close());
    },
  };
}
