// The network as a picture: Cytoscape.js draws it on a canvas.
//
// Only what has changed is changed. A switch keeps its place as long as the page knows it, also while it is gone; what is new is put
// beside its neighbours.

import cytoscape, { type Core, type ElementDefinition, type EventObject } from "cytoscape";
import { type KnownHost, type KnownLink, type KnownSwitch, Network, switchOf } from "../model/network";
import type { Picked, Selection } from "../model/selection";
import { isolated } from "../text";
import { type Point, around, place } from "./layout";
import { levelOf } from "./loads";
import { Positions } from "./positions";
import { styleOf } from "./style";

/** Beyond this number of hosts, switches show how many they have instead. */
const MOST_HOSTS = 150;

export interface Shown {
  /** What the search found; `null` without a search. */
  matching: ReadonlySet<string> | null;
  showsHosts: boolean;
  /** The switches of a path, and its links. */
  path: ReadonlySet<string>;
}

export class Picture {
  private readonly cy: Core;
  private readonly positions = new Positions();
  private readonly observer: ResizeObserver;
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly restyle = () => void this.cy.style(styleOf(this.container)).update();
  /** Whether the reader has moved the picture: then it stays as it is. */
  private isMoved = false;

  constructor(
    private readonly container: HTMLElement,
    private readonly network: Network,
    private readonly selection: Selection,
  ) {
    forbidInlineStyle();
    this.cy = cytoscape({
      container,
      style: styleOf(container),
      minZoom: 0.05,
      maxZoom: 3,
      boxSelectionEnabled: false,
      autounselectify: true,
      textureOnViewport: true,
      hideEdgesOnViewport: false,
    });
    this.cy.on("tap", (event) => this.pick(event));
    this.cy.on("dragfree", "node.switch", () => this.keepPositions());
    this.cy.on("drag", "node.switch", (event: EventObject) => this.placeHosts(event.target.id().slice(2)));
    this.cy.on("dragpan scrollzoom pinchzoom", () => (this.isMoved = true));
    this.scheme.addEventListener("change", this.restyle);
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(container);
  }

  destroy(): void {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.restyle);
    this.cy.destroy();
  }

  fit(): void {
    this.isMoved = false;
    if (this.cy.elements().length > 0) this.cy.fit(undefined, 30);
    // A network of two switches need not fill the screen.
    if (this.cy.zoom() > 1.4) {
      this.cy.zoom(1.4);
      this.cy.center();
    }
  }

  zoom(factor: number): void {
    this.isMoved = true;
    const { clientWidth, clientHeight } = this.container;
    const middle = { x: clientWidth / 2, y: clientHeight / 2 };
    this.cy.zoom({ level: this.cy.zoom() * factor, renderedPosition: middle });
  }

  pan(x: number, y: number): void {
    this.isMoved = true;
    this.cy.panBy({ x, y });
  }

  /** Forgets where things were put. */
  rearrange(): void {
    this.positions.forget();
    this.cy.elements().remove();
    this.isMoved = false;
  }

  /** Brings what is picked into view, if it is not. */
  reveal(picked: Picked): void {
    if (picked === null) return;
    const found = this.cy.getElementById(idOf(picked));
    if (found.empty()) return;
    const box = found.renderedBoundingBox();
    const { clientWidth, clientHeight } = this.container;
    const isSeen = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= clientWidth && box.y2 <= clientHeight;
    if (!isSeen) this.cy.center(found);
  }

  /** Shows the network as it is now. */
  update(shown: Shown): void {
    const { switches, links, hosts } = this.network;
    const showsHosts = shown.showsHosts && hosts.size <= MOST_HOSTS;
    const isNew = this.cy.nodes().empty();
    const before = this.cy.nodes().length;
    const placed = place([...switches.keys()], [...links.values()].map(endsOf), this.positions.known);
    this.cy.batch(() => {
      const wanted = new Map<string, ElementDefinition>();
      const hostsAt = countHosts(hosts);
      for (const known of switches.values()) {
        const hidden = showsHosts ? 0 : (hostsAt.get(known.id) ?? 0);
        add(wanted, this.switchElement(known, hidden, placed.get(known.id), shown));
      }
      for (const link of links.values()) {
        if (endsOf(link).every((end) => switches.has(end))) add(wanted, this.linkElement(link, shown));
      }
      if (showsHosts) {
        for (const host of hosts.values()) {
          if (switches.has(switchOf(host.port))) hostElements(host, shown).forEach((element) => add(wanted, element));
        }
      }
      this.apply(wanted);
    });
    this.positions.set(placed);
    if (showsHosts) new Set([...hosts.values()].map((host) => switchOf(host.port))).forEach((id) => this.placeHosts(id));
    this.mark();
    if (isNew || (!this.isMoved && this.cy.nodes().length !== before)) this.fit();
  }

  private switchElement(known: KnownSwitch, hidden: number, point: Point | undefined, shown: Shown): ElementDefinition {
    const classes = ["switch", known.role];
    if (known.goneMs !== null) classes.push("gone");
    if (known.portsDown > 0) classes.push("ports-down");
    if (shown.path.has(known.id)) classes.push("path");
    if (shown.matching !== null && !shown.matching.has(known.id)) classes.push("dimmed");
    const notes = [
      known.goneMs === null ? "" : "✕",
      known.portsDown > 0 ? `↓${known.portsDown}` : "",
      hidden > 0 ? `(${hidden})` : "",
    ].filter((note) => note !== "");
    const label = [isolated(known.label, 12), ...notes].join(" ");
    return {
      group: "nodes",
      data: { id: `s:${known.id}`, label },
      position: point ?? { x: 0, y: 0 },
      classes: classes.join(" "),
    };
  }

  private linkElement(link: KnownLink, shown: Shown): ElementDefinition {
    const [source, target] = endsOf(link);
    const classes = ["link"];
    if (link.goneMs !== null) classes.push("gone");
    else classes.push(`load-${levelOf(this.network.loadOf(link))}`);
    if (shown.path.has(link.key)) classes.push("path");
    const isDimmed = shown.matching !== null && !endsOf(link).every((end) => shown.matching?.has(end));
    if (isDimmed) classes.push("dimmed");
    return {
      group: "edges",
      data: { id: `l:${link.key}`, source: `s:${source}`, target: `s:${target}` },
      classes: classes.join(" "),
    };
  }

  /** Adds, changes and removes elements until they are the wanted ones. */
  private apply(wanted: ReadonlyMap<string, ElementDefinition>): void {
    this.cy.elements().forEach((element) => {
      if (!wanted.has(element.id())) element.remove();
    });
    const added: ElementDefinition[] = [];
    for (const [id, element] of wanted) {
      const known = this.cy.getElementById(id);
      if (known.empty()) {
        added.push(element);
        continue;
      }
      const data = element.data as { label?: string };
      if (data.label !== undefined && known.data("label") !== data.label) known.data("label", data.label);
      const classes = String(element.classes);
      if (known.scratch("classes") !== classes) {
        known.classes(classes);
        known.scratch("classes", classes);
      }
    }
    // Nodes come first in the map, so that links find their ends.
    this.cy.add(added);
  }

  private placeHosts(id: string): void {
    const node = this.cy.getElementById(`s:${id}`);
    if (node.empty()) return;
    const hosts = node.neighborhood("node.host").nodes().sort((a, b) => (a.id() < b.id() ? -1 : 1));
    const others = node.neighborhood("node.switch").nodes().map((other) => other.position());
    const points = around(node.position(), others, hosts.length);
    hosts.forEach((host, place) => void host.position(points[place] ?? node.position()));
  }

  private keepPositions(): void {
    this.positions.set(this.cy.nodes("node.switch").map((node) => [node.id().slice(2), { ...node.position() }]));
  }

  private resized(): void {
    this.cy.resize();
    if (!this.isMoved) this.fit();
  }

  /** Marks what is picked. */
  mark(): void {
    const picked = this.selection.picked;
    const id = picked === null ? "" : idOf(picked);
    this.cy.elements(".picked").forEach((element) => {
      if (element.id() !== id) element.removeClass("picked");
    });
    if (id !== "") this.cy.getElementById(id).addClass("picked");
  }

  private pick(event: EventObject): void {
    if (event.target === this.cy) return this.selection.pick(null);
    const id: string = event.target.id();
    const key = id.slice(2);
    if (id.startsWith("s:")) this.selection.pick({ kind: "switch", key });
    if (id.startsWith("l:")) this.selection.pick({ kind: "link", key });
    if (id.startsWith("h:") || id.startsWith("a:")) this.selection.pick({ kind: "host", key });
  }

  /** What there is to see, for tests: places by element. */
  get places(): Record<string, Point> {
    return Object.fromEntries(this.cy.nodes().map((node) => [node.id(), { ...node.position() }]));
  }
}

function add(wanted: Map<string, ElementDefinition>, element: ElementDefinition): void {
  wanted.set(String(element.data.id), element);
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

function endsOf(link: KnownLink): [string, string] {
  return [switchOf(link.a), switchOf(link.b)];
}

function idOf(picked: NonNullable<Picked>): string {
  const letters = { switch: "s", link: "l", host: "h" };
  return `${letters[picked.kind]}:${picked.key}`;
}

/** Cytoscape adds a style element unless there is one of this name; the Content-Security-Policy refuses it, and style.css has the rule. */
function forbidInlineStyle(): void {
  const id = "__________cytoscape_stylesheet";
  if (document.getElementById(id) !== null) return;
  const mark = document.createElement("meta");
  mark.id = id;
  document.head.append(mark);
}
