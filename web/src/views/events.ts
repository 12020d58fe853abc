// The log of events, of all or of what is picked.

import { Rows, button, el, setText } from "../dom";
import type { Entry } from "../model/log";
import { clipped, nameOf, setName, timeOfDay } from "../text";
import type { Context, View } from "./view";

/** How many are shown. */
const SHOWN = 300;

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
  const none = el("p", { class: "empty" }, "Nothing has happened since this page was opened.");
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
    ),
  );

  function update(): void {
    const wanted = text.value.trim().toLowerCase();
    const entries = live.log.latest(SHOWN, (entry) => {
      const isOfKind = kind.value === "" || entry.kind.startsWith(kind.value);
      const hasText = wanted === "" || entry.text.toLowerCase().includes(wanted);
      return isOfKind && hasText && selection.concerns(entry.about, live.network);
    });
    rows.show(entries);
    none.hidden = entries.length > 0;
    const picked = selection.picked;
    all.hidden = picked === null;
    const name = picked?.kind === "switch" ? live.network.switches.get(picked.key)?.label : undefined;
    setText(about, picked === null ? "" : `of ${picked.kind} ${clipped(name ?? picked.key)}`);
  }

  const unwatch = selection.watch(update);
  kind.addEventListener("change", update);
  text.addEventListener("input", update);
  return { element, update, close: unwatch };
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
