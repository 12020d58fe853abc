// The details of the selection.

import { Rows, button, el } from "../dom";
import { Network, portOf, switchOf } from "../model/network";
import { nameOf, passed, percent, scaled, setName } from "../text";
import { EmulationButton } from "./emulation";
import { endName, linkName } from "./list";
import type { Context } from "./view";

interface Fact {
  term: string;
  value: string;
}

export class Details {
  readonly element: HTMLElement;
  private readonly title = nameOf("");
  private readonly facts: Rows<Fact>;
  private readonly open: HTMLButtonElement;
  private readonly emulation: EmulationButton;

  constructor(private readonly context: Context) {
    const { selection, go } = context;
    const list = el("dl");
    this.facts = new Rows(list, (fact: Fact) => fact.term, factRow);
    this.open = button("Tables and ports", () => {
      const { picked } = selection;
      if (picked?.kind === "switch") go(`switch/${picked.key}`);
    });
    this.emulation = new EmulationButton(context);
    const close = button("✕", () => selection.pick(null), { class: "close", "aria-label": "Pick nothing" });
    this.element = el(
      "section",
      { class: "details", hidden: true, "aria-label": "What is picked", "aria-live": "polite" },
      el("h2", {}, this.title, close),
      list,
      el("div", { class: "bar" }, this.open, this.emulation.element),
      this.emulation.problem,
    );
  }

  update(): void {
    const { selection, live } = this.context;
    const picked = selection.picked;
    const described = picked === null ? null : describe(live.network, picked.kind, picked.key);
    this.element.hidden = picked === null;
    if (picked === null) return;
    setName(this.title, described?.title ?? picked.key);
    this.facts.show(described?.facts ?? [{ term: "State", value: "gone" }]);
    this.open.hidden = picked.kind !== "switch";
    this.emulation.update();
  }
}

function factRow(fact: Fact) {
  const value = nameOf("");
  const element = el("div", {}, el("dt", {}, fact.term), el("dd", {}, value));
  return { element, show: (fact: Fact) => setName(value, fact.value) };
}

type Described = { title: string; facts: Fact[] } | null;

function describe(network: Network, kind: string, key: string): Described {
  if (kind === "switch") return describeSwitch(network, key);
  return kind === "link" ? describeLink(network, key) : describeHost(network, key);
}

function describeSwitch(network: Network, id: string): Described {
  const known = network.switches.get(id);
  if (known === undefined) return null;
  const hosts = [...network.hosts.values()].filter((host) => switchOf(host.port) === id);
  const facts = [
    { term: "Datapath id", value: known.id },
    { term: "State", value: since(known.goneMs, "connected", "gone") },
    { term: "OpenFlow", value: known.openflow },
    { term: "Role of this controller", value: known.role },
    { term: "Connected from", value: known.peer },
    { term: "Ports", value: `${known.ports}${known.portsDown > 0 ? `, ${known.portsDown} down` : ""}` },
    { term: "Tables", value: String(known.tables) },
    { term: "Hosts", value: String(hosts.length) },
  ];
  return { title: known.label, facts };
}

function describeLink(network: Network, key: string): Described {
  const link = network.links.get(key);
  if (link === undefined) return null;
  const load = network.loadOf(link);
  const facts = [{ term: "State", value: since(link.goneMs, "up", "down") }];
  if (load !== null && link.goneMs === null) {
    facts.push({ term: "Load", value: `${scaled(load.bps, "bit/s")}${load.share === null ? "" : `, ${percent(load.share)}`}` });
  }
  for (const end of [link.a, link.b]) {
    const port = network.ports.get(switchOf(end))?.ports.find((port) => port.port === portOf(end));
    const sent = network.loads.of(end);
    const parts = [port?.name ?? "", port === undefined ? "" : port.up ? "up" : "down"];
    if (port?.speed_bps) parts.push(scaled(port.speed_bps, "bit/s"));
    if (sent !== null) parts.push(`sends ${scaled(sent.sentBps, "bit/s")}`);
    facts.push({ term: `Port ${endName(network, end)}`, value: parts.filter((part) => part !== "").join(", ") });
  }
  return { title: linkName(network, link), facts };
}

function describeHost(network: Network, key: string): Described {
  const host = network.hosts.get(key);
  if (host === undefined) return null;
  const facts = [
    { term: "MAC address", value: host.mac },
    { term: "IPv4", value: host.ipv4.join(", ") || "–" },
    { term: "IPv6", value: host.ipv6.join(", ") || "–" },
    { term: "Attached to", value: endName(network, host.port) },
  ];
  if (host.vlan !== null && host.vlan !== undefined) facts.push({ term: "VLAN", value: String(host.vlan) });
  if (host.router) facts.push({ term: "Router", value: "yes" });
  return { title: Network.hostName(host), facts };
}

function since(goneMs: number | null, there: string, gone: string): string {
  return goneMs === null ? there : `${gone} for ${passed((performance.now() - goneMs) / 1000)}`;
}

