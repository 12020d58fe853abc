// The network as a picture, and beside it as a list, for screen readers and for the keyboard.

import { button, el } from "../dom";
import { LEVELS } from "../graph/loads";
import { Picture } from "../graph/picture";
import { type KnownSwitch, Network, switchOf } from "../model/network";
import type { Picked } from "../model/selection";
import { counted } from "../text";
import { Details } from "./details";
import { EmulationPanel } from "./emulation";
import { NetworkList } from "./list";
import type { Context, View } from "./view";

/** The distance by which an arrow key moves the picture. */
const STEP = 60;

/** The distance by which an arrow key moves a switch. */
const SWITCH_STEP = 20;

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function networkView(context: Context): View {
  const { live, selection } = context;
  const { network } = live;
  const canvas = el("div", {
    class: "canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "picture of the network",
    "aria-describedby": "picture-help",
  });
  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search: name, id, MAC or IP address",
    "aria-label": "Search switches, links and hosts",
    autocomplete: "off",
    spellcheck: "false",
  });
  const hosts = el("input", { type: "checkbox", id: "hosts", checked: true });
  const clusters = el("input", { type: "checkbox", id: "clusters", checked: true });
  const clustersLabel = el("label", { class: "check", title: "Draw switches that are near each other as one" }, clusters, " clusters");
  const list = new NetworkList(context);
  const details = new Details(context);
  const emulation = new EmulationPanel(context);
  // Cytoscape needs a container with a size, so one in the page.
  let picture: Picture | null = null;
  const noPath = button("Hide the path", () => {
    selection.setPath([]);
    update();
  });
  const tools = el(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "Picture" },
    el("label", { class: "check" }, hosts, " hosts"),
    clustersLabel,
    button("Fit", () => picture?.fit()),
    button("+", () => picture?.zoom(1.25), { "aria-label": "Zoom in" }),
    button("−", () => picture?.zoom(0.8), { "aria-label": "Zoom out" }),
    button("Arrange", () => {
      picture?.rearrange();
      update();
    }),
    noPath,
  );
  const help = el(
    "p",
    { id: "picture-help", class: "hidden" },
    "Arrow keys move the picture, with Shift the switch that is picked; plus and minus zoom, 0 fits it. The list has everything that the picture shows.",
  );
  const element = el(
    "div",
    { class: "view network" },
    el("section", { class: "picture", "aria-label": "Picture" }, canvas, tools, legend(), help),
    el("aside", { "aria-label": "What there is" }, search, details.element, emulation.element, list.element),
  );

  function update(): void {
    const found = find(network, search.value);
    if (picture === null) {
      picture = withPicture(canvas, new Picture(canvas, network, selection, () => update()));
      picture.open(switchesOf(network, selection.picked));
    }
    picture.update({ matching: found, showsHosts: hosts.checked, clusters: clusters.checked, path: selection.path });
    clustersLabel.hidden = !picture.isLarge;
    noPath.hidden = selection.path.size === 0;
    list.show(found);
    details.update();
    emulation.update();
    canvas.setAttribute("aria-label", summary(network));
  }

  const unwatch = selection.watch(() => {
    if (picture?.open(switchesOf(network, selection.picked)) === true) update();
    picture?.mark();
    picture?.reveal(selection.picked);
    list.show(find(network, search.value));
    details.update();
  });
  search.addEventListener("input", update);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.pickFirst();
    if (event.key === "Escape" && search.value !== "") {
      search.value = "";
      update();
      event.stopPropagation();
    }
  });
  hosts.addEventListener("change", update);
  clusters.addEventListener("change", () => {
    picture?.closeClusters();
    update();
  });
  canvas.addEventListener("keydown", (event) => {
    if (picture !== null && obey(picture, event)) event.preventDefault();
  });
  return {
    element,
    update,
    close() {
      unwatch();
      picture?.destroy();
    },
  };
}

/** Returns the switches at which the selection is. */
function switchesOf(network: Network, picked: Picked): string[] {
  if (picked === null) return [];
  if (picked.kind === "switch") return [picked.key];
  const link = network.links.get(picked.key);
  const ports = picked.kind === "link" ? [link?.a, link?.b] : [network.hosts.get(picked.key)?.port];
  return ports.filter((port) => port !== undefined).map(switchOf);
}

/** Stores the picture in the canvas, for tests. */
function withPicture(canvas: HTMLElement, picture: Picture): Picture {
  Object.assign(canvas, { picture });
  return picture;
}

/** Performs the action of a key; returns whether it has one. */
function obey(picture: Picture, { key, shiftKey }: KeyboardEvent): boolean {
  const arrow = ARROWS[key];
  if (arrow !== undefined) {
    const [x, y] = arrow;
    // The arrows give the direction of view, so the picture moves in the opposite direction.
    if (!shiftKey || !picture.moveSwitch(SWITCH_STEP * x, SWITCH_STEP * y)) picture.pan(-STEP * x, -STEP * y);
    return true;
  }
  const others: Record<string, () => void> = {
    "+": () => picture.zoom(1.25),
    "-": () => picture.zoom(0.8),
    "0": () => picture.fit(),
  };
  others[key]?.();
  return others[key] !== undefined;
}

/** Returns the results of a search: switches by id, links and hosts by key, and their switches; `null` without a search. */
function find(network: Network, text: string): ReadonlySet<string> | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return null;
  const found = new Set<string>();
  const isWanted = (...texts: string[]) => texts.some((text) => text.toLowerCase().includes(wanted));
  const isWantedSwitch = (known: KnownSwitch | undefined) =>
    known !== undefined && isWanted(known.label, known.id, known.peer);
  for (const known of network.switches.values()) {
    if (isWantedSwitch(known)) found.add(known.id);
  }
  for (const host of network.hosts.values()) {
    if (!isWanted(host.mac, ...host.ipv4, ...host.ipv6)) continue;
    found.add(host.key);
    found.add(switchOf(host.port));
  }
  for (const link of network.links.values()) {
    const ends = [link.a, link.b].map((end) => network.switches.get(switchOf(end)));
    if (ends.some(isWantedSwitch)) found.add(link.key);
  }
  return found;
}

/** Describes the picture in words. */
function summary(network: Network): string {
  const { switches, links, hosts } = network;
  const gone = [...switches.values()].filter((known) => known.goneMs !== null).length;
  const lost = [...links.values()].filter((link) => link.goneMs !== null).length;
  const down = [...switches.values()].reduce((sum, known) => sum + known.portsDown, 0);
  const parts = [
    counted(switches.size - gone, "switch", "switches"),
    counted(links.size - lost, "link"),
    counted(hosts.size, "host"),
  ];
  if (gone > 0) parts.push(`${counted(gone, "switch", "switches")} gone`);
  if (lost > 0) parts.push(`${counted(lost, "link")} down`);
  if (down > 0) parts.push(`${counted(down, "port")} down`);
  return `The network: ${parts.join(", ")}`;
}

function legend(): HTMLElement {
  const levels = LEVELS.map((level, place) =>
    el("li", {}, el("span", { class: `swatch level-${place}`, "aria-hidden": "true" }), level.name),
  );
  const gone = el("li", {}, el("span", { class: "swatch gone", "aria-hidden": "true" }), "down or gone");
  const label = { class: "legend", "aria-label": "Load of links" };
  return el("ul", label, ...levels, gone);
}
