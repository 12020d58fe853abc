// The path that the controller would choose between two hosts, and the path that a packet takes by the switches' tables.

import type { Hop, Trace, TraceHop } from "../api/client";
import { button, el, offer, setText } from "../dom";
import { Network } from "../model/network";
import { clipped } from "../text";
import { Grid } from "./grid";
import type { Context, View } from "./view";

export function pathView(context: Context): View {
  const { live, selection } = context;
  const from = el("select", { id: "from" });
  const to = el("select", { id: "to" });
  const note = el("p", { role: "status" });
  const hops = new Grid("Hops", ["Switch", "In by port", "Out by port"]);
  const tracedNote = el("p", { role: "status" });
  const traced = new Grid("Tables", ["Switch", "In by port", "Table", "Entry", "Actions", "Out by port"]);
  const show = button("Show", () => void find(), { class: "primary" });
  const picture = button("Show in the picture", () => context.go("network"), { hidden: true });
  const element = el(
    "div",
    { class: "view plain" },
    el("div", { class: "bar" }, el("label", { for: "from" }, "From host"), from, el("label", { for: "to" }, "to host"), to, show, picture),
    note,
    hops.element,
    tracedNote,
    traced.element,
  );

  async function find(): Promise<void> {
    picture.hidden = true;
    hops.show([]);
    traced.show([]);
    setText(tracedNote, "");
    selection.setPath([]);
    const ends = new URLSearchParams({ from: from.value, to: to.value });
    const path = await told<Hop[]>(`api/v1/paths?${ends}`, note);
    if (path !== null) present(path);
    const trace = await told<Trace>(`api/v1/trace?${ends}`, tracedNote);
    if (trace !== null) presentTrace(trace, path ?? []);
  }

  /** Returns the interface's answer, or shows its error message and returns `null`. */
  async function told<T>(path: string, note: HTMLElement): Promise<T | null> {
    try {
      return await live.client.get<T>(path);
    } catch (error) {
      live.refuse(error);
      setText(note, error instanceof Error ? error.message : String(error));
      return null;
    }
  }

  function nameOf(id: string): string {
    return clipped(live.network.switches.get(id)?.label ?? id);
  }

  function present(path: readonly Hop[]): void {
    setText(note, path.length === 0 ? "There is no path between these hosts." : "The shortest path, which the controller would choose.");
    const { network } = live;
    hops.show(path.map(({ switch: id, in_port, out_port }) => ({ key: id, cells: [nameOf(id), in_port, out_port] })));
    const switches = new Set(path.map((hop) => hop.switch));
    const ends = new Set(path.flatMap((hop) => [`${hop.switch}:${hop.in_port}`, `${hop.switch}:${hop.out_port}`]));
    const links = [...network.links.values()].filter((link) => ends.has(link.a) && ends.has(link.b));
    selection.setPath([...switches, ...links.map((link) => link.key)]);
    picture.hidden = path.length === 0;
  }

  function presentTrace(trace: Trace, path: readonly Hop[]): void {
    const last = trace.hops[trace.hops.length - 1];
    setText(tracedNote, `${verdict(trace, path)}${last === undefined || trace.delivered ? "" : ending(trace, last)} The packet: ${clipped(trace.packet, 400)}`);
    traced.show(
      trace.hops.flatMap((hop, place) => {
        const out = hop.outputs.map((output) => output.port).join(", ") || (hop.to_controller ? "controller" : hop.normal ? "NORMAL" : "none");
        return hop.tables.map(({ table, priority, match, actions }, row) => {
          const entry = priority === null || priority === undefined ? "no entry" : `priority=${priority}${match === "" ? "" : `,${match}`}`;
          const isLast = row === hop.tables.length - 1;
          return { key: `${place}/${row}`, cells: [nameOf(hop.switch), hop.in_port, String(table), clipped(entry, 200), clipped(actions, 200), isLast ? out : ""] };
        });
      }),
    );
  }

  function ending(trace: Trace, last: TraceHop): string {
    const name = nameOf(last.switch);
    if (trace.unfinished) return " It does not end: it runs in a loop, or through too many switches.";
    if (last.to_controller) return ` It ends at ${name}, which sends it to a controller.`;
    if (last.normal) return ` From ${name} on, its way is not known: that forwards as a switch without OpenFlow does.`;
    return last.outputs.length === 0 ? ` It ends at ${name}, which drops it.` : ` It ends at ${name}, by a port that no link is known at.`;
  }

  function update(): void {
    const hosts = [...live.network.hosts.values()].sort((a, b) => (a.mac < b.mac ? -1 : 1));
    const values = hosts.map((host) => [host.mac, `${clipped(Network.hostName(host), 40)} (${host.mac})`] as const);
    for (const select of [from, to]) offer(select, values);
    show.disabled = hosts.length < 2;
    if (hosts.length < 2) setText(note, "A path needs two hosts: hosts are known once they have sent something, if the program `hosts` runs.");
    if (from.value === to.value && hosts.length > 1 && document.activeElement !== to) to.value = hosts.find((host) => host.mac !== from.value)?.mac ?? "";
  }

  return { element, update, close: () => undefined };
}

/** Compares the path by the tables with the controller's path. */
function verdict(trace: Trace, path: readonly Hop[]): string {
  if (!trace.delivered) return "By the tables as they are, a packet does not arrive.";
  const way = trace.hops.map((hop) => `${hop.switch}:${hop.in_port}:${hop.outputs.map((output) => output.port).join()}`);
  const chosen = path.map((hop) => `${hop.switch}:${hop.in_port}:${hop.out_port}`);
  const isSame = way.length === chosen.length && way.every((step, place) => step === chosen[place]);
  return isSame ? "By the tables, a packet takes this path." : "By the tables, a packet takes another way than this path.";
}
