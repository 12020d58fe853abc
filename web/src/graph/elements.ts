// The elements of the picture, made from the current network.

import type { ElementDefinition } from "cytoscape";
import { type KnownHost, type KnownLink, type KnownSwitch, Network, switchOf } from "../model/network";
import { isolated } from "../text";
import type { Clusters } from "./clusters";
import { type Point, mean } from "./layout";
import { levelOf } from "./loads";

/** With more hosts, switches show their number of hosts instead. */
const MOST_HOSTS = 150;

export interface Shown {
  /** The results of the search; `null` without a search. */
  matching: ReadonlySet<string> | null;
  showsHosts: boolean;
  /** Whether a large network is drawn in clusters. */
  clusters: boolean;
  /** The switches and links of a path. */
  path: ReadonlySet<string>;
}

type Elements = Map<string, ElementDefinition>;

export class Drawing {
  readonly showsHosts: boolean;
  private readonly hostsAt: ReadonlyMap<string, number>;

  constructor(
    private readonly network: Network,
    private readonly shown: Shown,
    private readonly placed: ReadonlyMap<string, Point>,
    private readonly clusters: Clusters | null,
  ) {
    this.showsHosts = shown.showsHosts && network.hosts.size <= MOST_HOSTS;
    this.hostsAt = countHosts(network.hosts);
  }

  /** Returns all elements by their ids; nodes come before the links between them. */
  elements(): Elements {
    const elements: Elements = new Map();
    this.addSwitches(elements);
    this.addLinks(elements);
    if (this.showsHosts) this.addHosts(elements);
    return elements;
  }

  private addSwitches(elements: Elements): void {
    const members = new Map<string, KnownSwitch[]>();
    for (const known of this.network.switches.values()) {
      const cluster = this.clusterOf(known.id);
      if (cluster === null) add(elements, this.switchElement(known));
      else append(members, cluster, known);
    }
    members.forEach((switches, cluster) => add(elements, this.clusterElement(cluster, switches)));
  }

  private addLinks(elements: Elements): void {
    const bundles = new Map<string, KnownLink[]>();
    for (const link of this.network.links.values()) {
      const ends = endsOf(link);
      if (!ends.every((end) => this.network.switches.has(end))) continue;
      const [a, b] = ends.map((end) => this.nodeOf(end)).sort();
      const isBundled = ends.some((end) => this.clusterOf(end) !== null);
      if (!isBundled) add(elements, this.linkElement(link));
      // Links inside a cluster are not drawn.
      else if (a !== b) append(bundles, `${a}|${b}`, link);
    }
    bundles.forEach((links, ends) => add(elements, this.bundleElement(ends, links)));
  }

  private addHosts(elements: Elements): void {
    for (const host of this.network.hosts.values()) {
      const at = switchOf(host.port);
      if (!this.network.switches.has(at) || this.clusterOf(at) !== null) continue;
      hostElements(host, this.shown).forEach((element) => add(elements, element));
    }
  }

  private clusterOf(id: string): string | null {
    return this.clusters?.of(id) ?? null;
  }

  /** Returns the node of a switch, or of its cluster. */
  private nodeOf(id: string): string {
    const cluster = this.clusterOf(id);
    return cluster === null ? `s:${id}` : `c:${cluster}`;
  }

  private isDimmed(...ids: string[]): boolean {
    const { matching } = this.shown;
    return matching !== null && !ids.every((id) => matching.has(id));
  }

  private switchElement(known: KnownSwitch): ElementDefinition {
    const hosts = this.showsHosts ? 0 : (this.hostsAt.get(known.id) ?? 0);
    const classes = classesOf({
      gone: known.goneMs !== null,
      "ports-down": known.portsDown > 0,
      path: this.shown.path.has(known.id),
      dimmed: this.isDimmed(known.id),
    });
    const label = labelOf(isolated(known.label, 12), known.goneMs === null ? 0 : 1, known.portsDown, hosts);
    return {
      group: "nodes",
      data: { id: `s:${known.id}`, label },
      // Copied, since Cytoscape.js changes the object when the switch is dragged.
      position: { ...(this.placed.get(known.id) ?? { x: 0, y: 0 }) },
      classes: `switch ${known.role} ${classes}`,
    };
  }

  /** Returns the node of a cluster: the name of one switch, the number of other switches, and the problems of all. */
  private clusterElement(cluster: string, switches: readonly KnownSwitch[]): ElementDefinition {
    const gone = switches.filter((known) => known.goneMs !== null).length;
    const portsDown = switches.reduce((sum, known) => sum + known.portsDown, 0);
    const hosts = switches.reduce((sum, known) => sum + (this.hostsAt.get(known.id) ?? 0), 0);
    const classes = classesOf({
      gone: gone > 0,
      "ports-down": portsDown > 0,
      path: switches.some((known) => this.shown.path.has(known.id)),
      dimmed: switches.every((known) => this.isDimmed(known.id)),
    });
    const named = switches.find((known) => known.id === cluster) ?? switches[0];
    const name = `${isolated(named?.label ?? "", 12)} +${switches.length - 1}`;
    const points = switches.map((known) => this.placed.get(known.id)).filter((point) => point !== undefined);
    return {
      group: "nodes",
      data: { id: `c:${cluster}`, label: labelOf(name, gone, portsDown, hosts), members: switches.length },
      position: mean(points) ?? { x: 0, y: 0 },
      classes: `cluster ${classes}`,
    };
  }

  private linkElement(link: KnownLink): ElementDefinition {
    const [source, target] = endsOf(link);
    const classes = classesOf({
      gone: link.goneMs !== null,
      [this.levelOf([link])]: link.goneMs === null,
      path: this.shown.path.has(link.key),
      dimmed: this.isDimmed(source, target),
    });
    return {
      group: "edges",
      data: { id: `l:${link.key}`, source: `s:${source}`, target: `s:${target}` },
      classes: `link ${classes}`,
    };
  }

  /** Returns the link between two clusters, or between a cluster and a switch, with the load of its fullest link. */
  private bundleElement(ends: string, links: readonly KnownLink[]): ElementDefinition {
    const [source = "", target = ""] = ends.split("|");
    const up = links.filter((link) => link.goneMs === null);
    const classes = classesOf({
      gone: up.length === 0,
      "partly-gone": up.length > 0 && up.length < links.length,
      [this.levelOf(up)]: up.length > 0,
      path: links.some((link) => this.shown.path.has(link.key)),
      dimmed: links.every((link) => this.isDimmed(...endsOf(link))),
    });
    return {
      group: "edges",
      data: { id: `b:${ends}`, source, target },
      classes: `bundle ${classes}`,
    };
  }

  /** Returns the class of the fullest of these links. */
  private levelOf(links: readonly KnownLink[]): string {
    return `load-${Math.max(0, ...links.map((link) => levelOf(this.network.loadOf(link))))}`;
  }
}

function add(elements: Elements, element: ElementDefinition): void {
  elements.set(String(element.data.id), element);
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function classesOf(classes: Record<string, boolean>): string {
  return Object.keys(classes)
    .filter((name) => classes[name])
    .join(" ");
}

/** Returns a name, followed by the numbers of lost switches, of ports that are down, and of hosts: `s1 ✕ ↓2 (5)`. */
function labelOf(name: string, gone: number, portsDown: number, hosts: number): string {
  const notes = [gone === 0 ? "" : gone === 1 ? "✕" : `✕${gone}`, portsDown === 0 ? "" : `↓${portsDown}`, hosts === 0 ? "" : `(${hosts})`];
  return [name, ...notes].filter((part) => part !== "").join(" ");
}

function hostElements(host: KnownHost, shown: Shown): ElementDefinition[] {
  const at = switchOf(host.port);
  const isDimmed = shown.matching !== null && !shown.matching.has(host.key);
  const dimmed = isDimmed ? " dimmed" : "";
  const label = isolated(Network.hostName(host), 20);
  return [
    { group: "nodes", data: { id: `h:${host.key}`, label }, classes: `host${dimmed}` },
    {
      group: "edges",
      data: { id: `a:${host.key}`, source: `s:${at}`, target: `h:${host.key}` },
      classes: `attached${dimmed}`,
    },
  ];
}

function countHosts(hosts: ReadonlyMap<string, KnownHost>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const host of hosts.values()) {
    const id = switchOf(host.port);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** Returns the switches of a link. */
export function endsOf(link: KnownLink): [string, string] {
  return [switchOf(link.a), switchOf(link.b)];
}
