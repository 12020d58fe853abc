// Actions on an emulated network. Each names its effect, and asks for confirmation.

import type { Emulated, EmulatedLink, PingResults } from "../api/client";
import { confirmed } from "../confirm";
import { Rows, button, el, offer, setText } from "../dom";
import { portOf, switchOf } from "../model/network";
import type { Picked } from "../model/selection";
import { clipped, counted } from "../text";
import type { Context } from "./view";

/** The amount of traffic that a click starts. */
const TRAFFIC = { mbit_per_s: 10, seconds: 30 };

/** The maximum number of failed pings that are named. */
const NAMED = 6;

/** An action; the question names its effect. */
interface Act {
  key: string;
  /** The object of the action. */
  name: string;
  title: string;
  verb: string;
  effect: string;
  path: string;
  body: unknown;
}

/** Cuts or repairs the selected link, or stops or starts the selected switch. */
export class EmulationButton {
  readonly element = button("", () => void this.act(), { hidden: true });
  readonly problem = el("p", { class: "problem", role: "alert", hidden: true });
  private shown: Act | null = null;

  constructor(private readonly context: Context) {}

  update(): void {
    const { live, selection } = this.context;
    const act = live.client.isReadOnly ? null : actOf(live.network.emulated, selection.picked, live.network.hosts.get(selection.picked?.key ?? "")?.mac);
    if (act?.key !== this.shown?.key) this.problem.hidden = true;
    this.shown = act;
    this.element.hidden = act === null;
    setText(this.element, act === null ? "" : `${act.title}…`);
  }

  private async act(): Promise<void> {
    if (this.shown !== null) await perform(this.context, this.shown, this.problem);
  }
}

/** Pings and traffic between hosts, and the parts that are cut or stopped. */
export class EmulationPanel {
  readonly element: HTMLElement;
  private readonly from = el("select", { id: "emulated-from" });
  private readonly to = el("select", { id: "emulated-to" });
  private readonly done = el("p", { role: "status" });
  private readonly problem = el("p", { class: "problem", role: "alert", hidden: true });
  private readonly broken: Rows<Act>;

  constructor(private readonly context: Context) {
    const broken = el("ul", { "aria-label": "What is cut or stopped" });
    this.broken = new Rows(broken, (act: Act) => act.key, () => this.row());
    this.element = el(
      "details",
      { class: "emulation", hidden: true },
      el("summary", {}, "Emulated network"),
      el("div", { class: "bar" }, el("label", { for: "emulated-from" }, "From"), this.from, el("label", { for: "emulated-to" }, "to"), this.to),
      el(
        "div",
        { class: "bar" },
        button("Ping…", () => void this.ping()),
        button("Ping all…", () => void this.pingAll()),
        button("Send traffic…", () => void this.send()),
      ),
      this.done,
      this.problem,
      broken,
    );
  }

  update(): void {
    const { client, network } = this.context.live;
    const { emulated } = network;
    this.element.hidden = client.isReadOnly || emulated.switches.length === 0;
    if (this.element.hidden) return;
    const names = emulated.hosts.map((host) => host.name);
    for (const select of [this.from, this.to]) offer(select, names.map((name) => [name, clipped(name, 40)]));
    if (this.from.value === this.to.value && names.length > 1) this.to.value = names.find((name) => name !== this.from.value) ?? "";
    this.broken.show(repairs(emulated));
  }

  private row() {
    let shown: Act | null = null;
    const name = el("span");
    const repair = button("", () => {
      if (shown !== null) void perform(this.context, shown, this.problem);
    });
    const show = (act: Act) => {
      shown = act;
      setText(name, `${act.name} `);
      setText(repair, `${act.verb}…`);
      repair.setAttribute("aria-label", act.title);
    };
    return { element: el("li", {}, name, repair), show };
  }

  private ping(): Promise<void> {
    const { from, to } = this.chosen();
    return this.pingFor(`Host ${from}: this makes it ping ${to} once.`, { from, to });
  }

  private pingAll(): Promise<void> {
    const count = this.context.live.network.emulated.hosts.length;
    return this.pingFor(`This makes each of ${counted(count, "host")} ping every other once.`, {});
  }

  private async pingFor(effect: string, body: { from?: string; to?: string }): Promise<void> {
    await this.ask(effect, "Ping", async () => {
      setText(this.done, "Waiting for answers…");
      return results(await this.context.live.client.ask<PingResults>("api/v1/emulation/pings", body));
    });
  }

  private async send(): Promise<void> {
    const { from, to } = this.chosen();
    const { mbit_per_s, seconds } = TRAFFIC;
    const effect = `Host ${from}: this makes it send ${mbit_per_s} Mbit/s to ${to} for ${seconds} s.`;
    await this.ask(effect, "Send", async () => {
      await this.context.live.client.post("api/v1/emulation/traffic", { from, to, ...TRAFFIC });
      return `${from} sends to ${to}.`;
    });
  }

  private chosen(): { from: string; to: string } {
    return { from: this.from.value, to: this.to.value };
  }

  private async ask(effect: string, verb: string, act: () => Promise<string>): Promise<void> {
    this.problem.hidden = true;
    setText(this.done, "");
    if (!(await confirmed(effect, verb))) return;
    try {
      setText(this.done, await act());
    } catch (error) {
      setText(this.done, "");
      complain(this.context, this.problem, error);
    }
  }
}

/** Performs an action if the user agrees, and reads the result. */
async function perform(context: Context, act: Act, problem: HTMLElement): Promise<void> {
  problem.hidden = true;
  if (!(await confirmed(`${act.name}: ${act.effect}`, act.verb))) return;
  try {
    await context.live.client.post(act.path, act.body);
  } catch (error) {
    complain(context, problem, error);
  }
  context.live.readEmulation();
}

function complain({ live }: Context, problem: HTMLElement, error: unknown): void {
  live.refuse(error);
  setText(problem, error instanceof Error ? error.message : String(error));
  problem.hidden = false;
}

/** Returns the action for the selection, if any; `mac` is a host's. */
function actOf(emulated: Emulated, picked: Picked, mac: string | undefined): Act | null {
  if (picked?.kind === "switch") {
    const place = emulated.switches.findIndex((known) => known.id === picked.key);
    return place < 0 ? null : switchAct(emulated, place);
  }
  const host = emulated.hosts.find((known) => known.mac === mac)?.name;
  const place = emulated.links.findIndex((link) => link.b === host || link.a === host || keyOf(link) === picked?.key);
  return picked === null || place < 0 ? null : linkAct(emulated, place, host === undefined ? "this link" : "its link");
}

/** Returns the actions that undo all cuts and stops. */
function repairs(emulated: Emulated): Act[] {
  const links = emulated.links.flatMap((link, place) => (link.up ? [] : [linkAct(emulated, place)]));
  const switches = emulated.switches.flatMap((known, place) => (known.running ? [] : [switchAct(emulated, place)]));
  return [...links, ...switches];
}

function linkAct(emulated: Emulated, place: number, which = "this link"): Act {
  const { a, b, up } = emulated.links[place]!;
  const known = {
    key: `link ${place}`,
    name: `Link ${endName(emulated, a)} – ${endName(emulated, b)}`,
    path: `api/v1/emulation/links/${place}`,
    body: { up: !up },
  };
  if (!up) return { ...known, title: `Repair ${which}`, verb: "Repair", effect: "this repairs it." };
  const effect = "this cuts it. Frames in it are lost, and both ends lose their carrier.";
  return { ...known, title: `Cut ${which}`, verb: "Cut", effect };
}

function switchAct(emulated: Emulated, place: number): Act {
  const { id, name, running } = emulated.switches[place]!;
  const known = {
    key: `switch ${id}`,
    name: `Switch ${clipped(name, 24)}`,
    path: `api/v1/emulation/switches/${id}`,
    body: { running: !running },
  };
  if (!running) return { ...known, title: "Start this switch", verb: "Start", effect: "this starts it, without entries." };
  const effect = "this stops it, as a power failure does. Its entries are lost.";
  return { ...known, title: "Stop this switch", verb: "Stop", effect };
}

/** Returns the name of an end in the network: `s1:2`, or `h1`. */
function endName(emulated: Emulated, end: string): string {
  const owner = emulated.switches.find((known) => known.id === switchOf(end));
  return clipped(owner === undefined ? end : `${owner.name}:${portOf(end)}`, 24);
}

/** Returns the key of a link between switches in the picture. */
function keyOf({ a, b }: EmulatedLink): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}

function results({ sent, answered, longest_ms, failed }: PingResults): string {
  const longest = longest_ms === null || longest_ms === undefined ? "" : `, the slowest in ${longest_ms.toFixed(2)} ms`;
  const named = failed.slice(0, NAMED).map(({ from, to }) => `${from} → ${to}`);
  const others = failed.length > NAMED ? `, and ${counted(failed.length - NAMED, "other")}` : "";
  const lost = failed.length > 0 ? `; not answered: ${named.join(", ")}${others}` : "";
  return `${answered} of ${counted(sent, "ping")} answered${longest}${lost}.`;
}
