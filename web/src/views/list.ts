// Switches, links and hosts as a list of buttons.

import { Rows, el, setAttribute, setText } from "../dom";
import { type KnownHost, type KnownLink, type KnownSwitch, Network, portOf, switchOf } from "../model/network";
import { clipped, counted, nameOf, percent, scaled, setName } from "../text";
import type { Context } from "./view";

/** The maximum number of listed items of each kind; the search finds the others. */
const LISTED = 200;

type Item = { kind: "switch" | "link" | "host"; key: string; name: string; note: string; isBad: boolean };

export class NetworkList {
  readonly element: HTMLElement;
  private readonly parts: Record<Item["kind"], Part>;
  private first: Item | null = null;

  constructor(private readonly context: Context) {
    this.parts = {
      switch: new Part(context, "Switches"),
      link: new Part(context, "Links"),
      host: new Part(context, "Hosts"),
    };
    const { switch: switches, link, host } = this.parts;
    this.element = el("div", { class: "lists" }, switches.element, link.element, host.element);
  }

  /** Shows everything, or the results of a search. */
  show(found: ReadonlySet<string> | null): void {
    const { network } = this.context.live;
    const isFound = (item: Item) => found === null || found.has(item.key);
    const switches = [...network.switches.values()].map(switchItem).filter(isFound);
    const links = [...network.links.values()].map((link) => linkItem(network, link)).filter(isFound);
    const hosts = [...network.hosts.values()].map((host) => hostItem(network, host)).filter(isFound);
    this.parts.switch.show(sorted(switches));
    this.parts.link.show(sorted(links));
    this.parts.host.show(sorted(hosts));
    this.first = found === null ? null : (hosts[0] ?? switches[0] ?? links[0] ?? null);
    const exact = switches.find((item) => found !== null && found.size > 0 && item.key === [...found][0]);
    if (hosts.length === 0 && exact !== undefined) this.first = exact;
  }

  /** Selects the first result of the search. */
  pickFirst(): void {
    if (this.first !== null) this.context.selection.pick({ kind: this.first.kind, key: this.first.key });
  }
}

const ORDER = new Intl.Collator("en", { numeric: true });

/** Sorts items with problems first, then by name; numbers in names are compared as numbers, unless there are too many items. */
function sorted(items: Item[]): Item[] {
  const compare = items.length > 1_000 ? (a: string, b: string) => Number(a > b) - Number(a < b) : ORDER.compare;
  return items.sort((a, b) => Number(b.isBad) - Number(a.isBad) || compare(a.name, b.name));
}

/** The list of one kind. */
class Part {
  readonly element: HTMLElement;
  private readonly title: HTMLElement;
  private readonly more: HTMLElement;
  private readonly rows: Rows<Item>;

  constructor(
    private readonly context: Context,
    private readonly name: string,
  ) {
    const list = el("ul");
    this.title = el("h2", {}, name);
    this.more = el("p", { class: "more", hidden: true });
    this.element = el("section", {}, this.title, list, this.more);
    this.rows = new Rows(list, (item: Item) => item.key, () => this.row());
  }

  show(items: Item[]): void {
    setText(this.title, `${this.name} (${items.length})`);
    this.rows.show(items.slice(0, LISTED));
    const hidden = items.length - LISTED;
    this.more.hidden = hidden <= 0;
    setText(this.more, hidden > 0 ? `${counted(hidden, "other")}: search for them` : "");
  }

  private row() {
    const name = nameOf("");
    const note = el("span", { class: "note" });
    const pick = el("button", { type: "button", class: "item" }, name, note);
    const element = el("li", {}, pick);
    let shown: Item | null = null;
    const { selection, go } = this.context;
    pick.addEventListener("click", () => {
      if (shown !== null) selection.pick({ kind: shown.kind, key: shown.key });
    });
    pick.addEventListener("dblclick", () => {
      if (shown?.kind === "switch") go(`switch/${shown.key}`);
    });
    return {
      element,
      show(item: Item) {
        shown = item;
        setName(name, item.name);
        setText(note, item.note);
        pick.classList.toggle("bad", item.isBad);
        setAttribute(pick, "aria-pressed", String(selection.is(item.kind, item.key)));
      },
    };
  }
}

function switchItem(known: KnownSwitch): Item {
  const notes = [`OpenFlow ${known.openflow}`];
  if (known.role !== "equal") notes.push(known.role);
  if (known.portsDown > 0) notes.push(`${counted(known.portsDown, "port")} down`);
  const isGone = known.goneMs !== null;
  const note = isGone ? "gone" : notes.join(", ");
  return { kind: "switch", key: known.id, name: known.label, note, isBad: isGone || known.portsDown > 0 };
}

function linkItem(network: Network, link: KnownLink): Item {
  const isGone = link.goneMs !== null;
  const load = network.loadOf(link);
  const share = load?.share === null || load === null ? "" : ` (${percent(load.share)})`;
  const note = isGone ? "down" : load === null ? "" : `${scaled(load.bps, "bit/s")}${share}`;
  return { kind: "link", key: link.key, name: linkName(network, link), note, isBad: isGone };
}

function hostItem(network: Network, host: KnownHost): Item {
  const note = `at ${endName(network, host.port)}`;
  return { kind: "host", key: host.key, name: Network.hostName(host), note, isBad: false };
}

/** Returns the name of an end: s1:3. */
export function endName(network: Network, end: string): string {
  const known = network.switches.get(switchOf(end));
  return `${clipped(known?.label ?? switchOf(end), 24)}:${portOf(end)}`;
}

export function linkName(network: Network, link: KnownLink): string {
  return `${endName(network, link.a)} – ${endName(network, link.b)}`;
}
