// The picture of the network, which Cytoscape.js draws on a canvas.
//
// Only changes are applied. A switch keeps its position as long as the page knows it, even while it is gone; new switches are
// placed beside their neighbours. A cluster is drawn at the centre of its switches' positions.

import cytoscape, { type Core, type ElementDefinition, type EventObject } from "cytoscape";
import { type Network, switchOf } from "../model/network";
import type { Picked, Selection } from "../model/selection";
import { CLUSTERED_FROM, Clusters } from "./clusters";
import { Drawing, type Shown, endsOf } from "./elements";
import { type Point, around, mean, place } from "./layout";
import { Positions } from "./positions";
import { styleOf } from "./style";

/** The properties of an element that tests read. */
const LOOKS = ["width", "opacity", "line-style", "line-color", "border-style", "border-width", "border-color"] as const;

export class Picture {
  private readonly cy: Core;
  private readonly positions = new Positions();
  private readonly clusters = new Clusters();
  private readonly observer: ResizeObserver;
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly restyle = () => void this.cy.style(styleOf(this.container)).update();
  /** Whether the user has moved the picture: then it is no longer fitted automatically. */
  private isMoved = false;

  constructor(
    private readonly container: HTMLElement,
    private readonly network: Network,
    private readonly selection: Selection,
    /** Called when the user has opened a cluster. */
    private readonly whenOpened: () => void,
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
    this.cy.on("drag", "node.switch", (event: EventObject) => this.placeHostsNear(event.target.id().slice(2)));
    this.cy.on("dragfree", "node.cluster", (event: EventObject) => this.moveCluster(event.target.id().slice(2), event.target.position()));
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

  /** Moves the selected switch; returns whether there is one. */
  moveSwitch(x: number, y: number): boolean {
    const { picked } = this.selection;
    const node = picked?.kind === "switch" ? this.cy.getElementById(idOf(picked)) : this.cy.collection();
    if (picked === null || node.empty()) return false;
    node.shift({ x, y });
    this.placeHostsNear(picked.key);
    this.keepPositions();
    this.reveal(picked);
    return true;
  }

  /** Forgets all positions. */
  rearrange(): void {
    this.positions.forget();
    this.clusters.forget();
    this.cy.elements().remove();
    this.isMoved = false;
  }

  /** Moves the selection into view, if it is outside. */
  reveal(picked: Picked): void {
    if (picked === null) return;
    const found = this.cy.getElementById(idOf(picked));
    if (found.empty()) return;
    const box = found.renderedBoundingBox();
    const { clientWidth, clientHeight } = this.container;
    const isSeen = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= clientWidth && box.y2 <= clientHeight;
    if (!isSeen) this.cy.center(found);
  }

  /** Whether the network is large enough to be drawn in clusters. */
  get isLarge(): boolean {
    return this.network.switches.size >= CLUSTERED_FROM;
  }

  /** Opens the clusters of these switches; returns whether any of them was closed. */
  open(switches: Iterable<string>): boolean {
    return [...switches].map((id) => this.clusters.open(id)).some((isNew) => isNew);
  }

  /** Closes all clusters. */
  closeClusters(): void {
    this.clusters.closeAll();
  }

  /** Shows the current network. */
  update(shown: Shown): void {
    const { switches, links } = this.network;
    const isNew = this.cy.nodes().empty();
    const before = this.cy.nodes().length;
    const ends = [...links.values()].map(endsOf);
    const placed = place([...switches.keys()], ends, this.positions.known);
    const isClustered = shown.clusters && this.isLarge;
    if (isClustered) this.clusters.update([...switches.keys()], ends);
    const drawing = new Drawing(this.network, shown, placed, isClustered ? this.clusters : null);
    this.cy.batch(() => this.apply(drawing.elements()));
    this.positions.set(placed);
    if (drawing.showsHosts) this.placeAllHosts();
    this.mark();
    if (isNew || (!this.isMoved && this.cy.nodes().length !== before)) this.fit();
  }

  /** Adds, changes and removes elements until they are equal to `wanted`. */
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
      const { label, members } = element.data as { label?: string; members?: number };
      if (label !== undefined && known.data("label") !== label) known.data({ label, members });
      const classes = String(element.classes);
      if (known.scratch("classes") !== classes) {
        known.classes(classes);
        known.scratch("classes", classes);
      }
    }
    // Nodes come first in the map, so that links find their ends.
    this.cy.add(added);
  }

  private placeAllHosts(): void {
    new Set([...this.network.hosts.values()].map((host) => switchOf(host.port))).forEach((id) => this.placeHosts(id));
  }

  /** Places hosts on the side of their switch away from its neighbours, so the neighbours' hosts move, too. */
  private placeHostsNear(id: string): void {
    const neighbours = this.cy.getElementById(`s:${id}`).neighborhood("node.switch");
    [id, ...neighbours.map((node) => node.id().slice(2))].forEach((id) => this.placeHosts(id));
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

  /** Moves the switches of a cluster that was dragged. */
  private moveCluster(cluster: string, to: Point): void {
    const members = [...this.network.switches.keys()].filter((id) => this.clusters.of(id) === cluster);
    const points = members.map((id) => this.positions.known.get(id) ?? to);
    const middle = mean(points) ?? to;
    this.positions.set(members.map((id, place) => [id, moved(points[place] ?? to, middle, to)]));
  }

  private resized(): void {
    this.cy.resize();
    if (!this.isMoved) this.fit();
  }

  /** Marks the selection. */
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
    if (id.startsWith("c:") && this.clusters.open(key)) this.whenOpened();
  }

  /** Positions by element, for tests. */
  get places(): Record<string, Point> {
    return Object.fromEntries(this.cy.nodes().map((node) => [node.id(), { ...node.position() }]));
  }

  /** The nodes' labels, for tests. */
  get labels(): Record<string, string> {
    return Object.fromEntries(this.cy.nodes().map((node) => [node.id(), String(node.data("label"))]));
  }

  /** The ids of all elements, for tests. */
  get ids(): string[] {
    return this.cy.elements().map((element) => element.id());
  }

  /** Returns how an element is drawn, for tests. */
  look(id: string): { classes: string[] } & Record<(typeof LOOKS)[number], string> {
    const element = this.cy.getElementById(id);
    const looks = Object.fromEntries(LOOKS.map((name) => [name, String(element.style(name))]));
    return { classes: element.classes(), ...(looks as Record<(typeof LOOKS)[number], string>) };
  }

  /** The visible part of the network, for tests. */
  get viewport(): { zoom: number; pan: Point } {
    return { zoom: this.cy.zoom(), pan: { ...this.cy.pan() } };
  }

  /** Returns the position of a node on the canvas, for tests. */
  rendered(id: string): Point {
    return { ...this.cy.getElementById(id).renderedPosition() };
  }
}

function moved(point: Point, from: Point, to: Point): Point {
  return { x: point.x + to.x - from.x, y: point.y + to.y - from.y };
}

function idOf(picked: NonNullable<Picked>): string {
  const letters = { switch: "s", link: "l", host: "h" };
  return `${letters[picked.kind]}:${picked.key}`;
}

/** Prevents Cytoscape from adding a style element, which the Content-Security-Policy refuses; style.css has the rule. */
function forbidInlineStyle(): void {
  const id = "__________cytoscape_stylesheet";
  if (document.getElementById(id) !== null) return;
  const mark = document.createElement("meta");
  mark.id = id;
  document.head.append(mark);
}
