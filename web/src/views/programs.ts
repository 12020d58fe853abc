// The running control programs, with their rates and panics, and the controller's settings.

import type { ControllerState, Panic } from "../api/client";
import { el, setText } from "../dom";
import { clipped, counted, passed, scaled } from "../text";
import { Grid, type GridRow } from "./grid";
import type { Context, View } from "./view";

/** The interval of queries to the controller. */
const EVERY_MS = 2_000;

export function programsView(context: Context): View {
  const { live, rates } = context;
  const title = el("h2");
  const programs = new Grid("Programs", ["Program", "Running for", "Packet-ins a second", "Median", "99th percentile"]);
  const summary = el("p");
  const panics = new Grid("Panics", ["Ago", "Program", "Switch", "Message"]);
  const settings = new Grid("Settings", ["Option", "Value"]);
  const element = el("div", { class: "view plain" }, title, programs.element, summary, panics.element, settings.element);
  let state: ControllerState | null = null;
  let isClosed = false;
  let timer = 0;

  function show(): void {
    programs.show(programRows(context, state));
    const count = rates.points.at(-1)?.panics ?? null;
    setText(summary, count === null ? "" : count === 0 ? "No program has panicked." : `Programs have panicked: ${counted(count, "time")}.`);
    summary.classList.toggle("problem", (count ?? 0) > 0);
    if (state === null) return;
    setText(title, `Urtica ${state.version}, running for ${passed(state.running_seconds)}`);
    panics.show(state.panics.map((panic, place) => panicRow(context, panic, place)));
    settings.show(state.settings.map(({ name, values }) => ({ key: name, cells: [name, clipped(values.join(", "), 400)] })));
  }

  async function follow(): Promise<void> {
    if (live.isLive && !document.hidden) {
      try {
        state = await live.client.get<ControllerState>("api/v1/controller");
      } catch (error) {
        // The events report a lost connection.
        live.refuse(error);
      }
    }
    if (isClosed) return;
    show();
    timer = setTimeout(() => void follow(), EVERY_MS);
  }

  const unwatch = rates.watch(show);
  void follow();
  return {
    element,
    update: show,
    close() {
      isClosed = true;
      clearTimeout(timer);
      unwatch();
    },
  };
}

/** Returns a row for each running program, and for other consumers of packet-ins. */
function programRows(context: Context, state: ControllerState | null): GridRow[] {
  const { live, rates } = context;
  const timed = new Map((rates.points.at(-1)?.programs ?? []).map((program) => [program.name, program]));
  const since = new Map((state?.programs ?? []).map((program) => [program.name, program.running_seconds]));
  const ms = (value: number | null | undefined) => (typeof value === "number" ? `${value.toPrecision(2)} ms` : "–");
  return [...new Set([...live.network.programs, ...timed.keys()])].map((name) => {
    const rate = timed.get(name);
    const seconds = since.get(name);
    const running = typeof seconds === "number" ? passed(seconds) : "–";
    const packetIns = rate === undefined ? "–" : scaled(rate.packetInsPerSecond, "/s");
    return { key: name, cells: [clipped(name), running, packetIns, ms(rate?.p50Ms), ms(rate?.p99Ms)] };
  });
}

function panicRow(context: Context, panic: Panic, place: number): GridRow {
  const { switches } = context.live.network;
  const at = panic.switch ? (switches.get(panic.switch)?.label ?? panic.switch) : "–";
  const cells = [passed(panic.age_seconds), clipped(panic.program ?? "without a name"), clipped(at), clipped(panic.reason, 400)];
  return { key: String(place), isBad: true, cells };
}
