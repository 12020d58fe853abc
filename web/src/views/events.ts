// The log of events: all events, or those about the selection.

import { Rows, button, el, setText } from "../dom";
import type { Entry } from "../model/log";
import { Network } from "../model/network";
import type { Picked } from "../model/selection";
import { clipped, counted, nameOf, setName, timeOfDay } from "../text";
import { linkName } from "./list";
import type { Context, View } from "./view";

/** The maximum number of listed events; a filter finds the others. */
const LISTED = 300;

const KINDS = ["switch", "port", "link", "host", "role", "program", "refused", "missed"];

export function eventsView(context: Context): View {
  const { live, selection } = context;
  const body = el("tbody");
  const rows = new Rows(body, (entry: Entry) => String(entry.number), row);
  const kind = el(
    "select",
    { "aria-label": "Kind of events" },
    el("option", { value: "" }, "all kinds"),
    ...KINDS.map((name) => el("option", { value: name }, name)),
  );
  const text = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events by text" });
  const about = el("span", { class: "about" });
  const all = button("Show all", () => selection.pick(null));
  const more = el("p", { class: "more", hidden: true });
  const none = el("p", { class: "empty" });
  const element = el(
    "div",
    { class: "view events" },
    el("div", { class: "bar" }, kind, text, about, all),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el("tr", {}, el("th", { scope: "col" }, "Time"), el("th", { scope: "col" }, "Kind"), el("th", { scope: "col" }, "Event")),
        ),
        body,
      ),
      none,
      more,
    ),
  );

  function update(): void {
    const wanted = text.value.trim().toLowerCase();
    const entries = live.log.wanted((entry) => {
      const isOfKind = kind.value === "" || entry.kind.startsWith(kind.value);
      const hasText = wanted === "" || entry.text.toLowerCase().includes(wanted);
      return isOfKind && hasText && selection.concerns(entry.about, live.network);
    });
    rows.show(entries.slice(0, LISTED));
    const hidden = entries.length - LISTED;
    more.hidden = hidden <= 0;
    setText(more, hidden > 0 ? `${counted(hidden, "older event")}: filter to find them` : "");
    none.hidden = entries.length > 0;
    const isFiltered = wanted !== "" || kind.value !== "" || selection.picked !== null;
    setText(none, isFiltered ? "No event is like this." : "Nothing has happened since this page was opened.");
    const picked = selection.picked;
    all.hidden = picked === null;
    setText(about, picked === null ? "" : `of ${picked.kind} ${nameOfPicked(live.network, picked)}`);
  }

  const unwatch = selection.watch(update);
  kind.addEventListener("change", update);
  text.addEventListener("input", update);
  return { element, update, close: unwatch };
}

function nameOfPicked(network: Network, { kind, key }: NonNullable<Picked>): string {
  const [link, host] = [network.links.get(key), network.hosts.get(key)];
  if (kind === "link" && link !== undefined) return linkName(network, link);
  if (kind === "host" && host !== undefined) return clipped(Network.hostName(host));
  return clipped(network.switches.get(key)?.label ?? key);
}

function row(entry: Entry) {
  const text = nameOf("");
  setName(text, clipped(entry.text, 200));
  text.textContent = clipped(entry.text, 200);
  const element = el(
    "tr",
    { class: `event ${entry.kind}` },
    el("td", { class: "time" }, timeOfDay(entry.timeMs)),
    el("td", {}, entry.kind.replaceAll("_", " ")),
    el("td", {}, text),
  );
  return { element, show: () => undefined };
}
