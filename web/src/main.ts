// The page: the header of all views, and the selection of the view.

import { Client } from "./api/client";
import { el, setText, throttled } from "./dom";
import { Live, type Status } from "./model/live";
import { Rates } from "./model/rates";
import { Selection } from "./model/selection";
import { passed } from "./text";
import { TokenDialog } from "./token";
import { eventsView } from "./views/events";
import { networkView } from "./views/network";
import { pathView } from "./views/path";
import { programsView } from "./views/programs";
import { ratesView } from "./views/rates";
import { switchView } from "./views/switch";
import type { Context, View } from "./views/view";

const VIEWS: readonly [string, string, (context: Context) => View][] = [
  ["network", "Network", networkView],
  ["path", "Path", pathView],
  ["rates", "Rates", ratesView],
  ["programs", "Programs", programsView],
  ["events", "Events", eventsView],
];

const client = new Client();
const live = new Live(client);
const selection = new Selection();
const rates = new Rates(live);
const context: Context = { live, selection, rates, go: (address) => (location.hash = `#/${address}`) };

const main = byId("main");
const nav = byId("views");
const status = byId("status");
const banner = byId("banner");
let view: View | null = null;

const links = VIEWS.map(([address, name]) => el("a", { href: `#/${address}` }, name));
nav.append(...links);

const token = new TokenDialog((given) => {
  client.setToken(given);
  live.connect();
});

function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`index.html has no ${id}`);
  return found;
}

/** Shows the view that the address names, by default the network. */
function route(): void {
  const [name = "", rest = ""] = location.hash.replace(/^#\//, "").split("/");
  view?.close();
  const isSwitch = name === "switch" && /^[0-9a-f]{16}$/.test(rest);
  if (isSwitch) selection.pick({ kind: "switch", key: rest });
  const [address, , create] = VIEWS.find(([address]) => address === name) ?? VIEWS[0]!;
  view = isSwitch ? switchView(context, rest) : create(context);
  main.replaceChildren(view.element);
  links.forEach((link) => {
    const isCurrent = !isSwitch && link.hash === `#/${address}`;
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  view.update();
}

function showStatus(): void {
  const { kind } = live.status;
  document.body.dataset.status = kind;
  setText(status, shortly(live.status));
  const text = atLength(live.status);
  banner.hidden = text === "";
  if (banner.textContent !== text) banner.textContent = text;
  if (live.status.kind === "locked") token.ask(live.status.reason);
}

function shortly(status: Status): string {
  const { network } = live;
  const up = [...network.switches.values()].filter((known) => known.goneMs === null).length;
  switch (status.kind) {
    case "live":
      return `Live · ${up} switches, ${network.hosts.size} hosts${network.programs.length > 0 ? ` · ${network.programs.join(", ").slice(0, 80)}` : ""}`;
    case "connecting":
      return "Connecting…";
    case "lost":
      return "Not connected";
    case "locked":
      return "Locked";
  }
}

function atLength(status: Status): string {
  if (status.kind !== "lost") return "";
  const { sinceMs, againMs, reason } = status;
  const now = performance.now();
  const again = Math.max(0, Math.ceil((againMs - now) / 1000));
  const old = sinceMs === null ? "Nothing is known yet." : `What is shown is ${passed((now - sinceMs) / 1000)} old.`;
  return `The controller does not answer (${reason}). ${old} Next try in ${again} s.`;
}

const update = throttled(() => {
  showStatus();
  view?.update();
});

live.network.watch(update);
live.watch(update);
window.addEventListener("hashchange", route);
window.addEventListener("online", () => live.status.kind === "lost" && live.connect());
document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (event.key === "/" && !isTyping) {
    const search = document.querySelector<HTMLInputElement>("input[type=search]");
    search?.focus();
    event.preventDefault();
  }
  if (event.key === "Escape" && document.querySelector("dialog[open]") === null) selection.pick(null);
});
// Elapsed times are shown, too.
setInterval(() => !document.hidden && live.status.kind !== "connecting" && update(), 1000);
route();
live.connect();
