// A switch: its tables and entries in the syntax of ovs-ofctl, groups, meters and ports, with live counters.

import type { FlowEntry, Group, Meter, Table } from "../api/client";
import { Refused } from "../api/client";
import { button, el, setText } from "../dom";
import type { KnownSwitch } from "../model/network";
import { clipped, count, counted, passed, scaled, shortId } from "../text";
import { Changes } from "./change";
import { Grid, type GridRow } from "./grid";
import type { Context, View } from "./view";

/** The interval of queries to a switch. */
const EVERY_MS = 2_000;

/** The maximum number of listed entries; the filter finds the others. */
const LISTED = 500;

/** With more entries than this, they are not read continuously. */
const MOST_FOLLOWED = 20_000;

interface Told {
  tables: Table[];
  flows: FlowEntry[];
  groups: Group[];
  meters: Meter[];
}

export function switchView(context: Context, id: string): View {
  const { live } = context;
  const title = el("h2");
  const problem = el("p", { class: "problem", role: "status", hidden: true });
  const filter = el("input", { type: "search", placeholder: "Filter entries: in_port=1, output:2, …", "aria-label": "Filter entries" });
  const more = el("p", { class: "more" });
  const tables = new Grid("Tables", ["Table", "Entries", "Lookups", "Matched", "Compiled as"]);
  const flows = new Grid("Entries", ["Table", "Priority", "Match", "Actions", "Packets", "Bytes", "Age", "Program", "Cookie"]);
  const groups = new Grid("Groups", ["Group"]);
  const meters = new Grid("Meters", ["Meter"]);
  const ports = new Grid("Ports", ["Port", "Name", "State", "Speed", "Receives", "Sends", "Dropped", "Errors"]);
  const changes = new Changes(context, id, () => void refresh());
  const element = el(
    "div",
    { class: "view switch" },
    el("div", { class: "bar" }, button("← Network", () => context.go("network")), title),
    problem,
    changes.element,
    ports.element,
    tables.element,
    el("section", { class: "entries" }, el("div", { class: "bar" }, filter), flows.element, more),
    groups.element,
    meters.element,
  );
  let told: Told | null = null;
  let isClosed = false;
  let timer = 0;

  function show(): void {
    const known = live.network.switches.get(id);
    setText(title, `Switch ${clipped(known?.label ?? shortId(id))} · ${id}`);
    element.classList.toggle("stale", !live.isLive || known?.goneMs !== null);
    ports.show(portRows(context, id, known));
    changes.update();
    if (told === null) return;
    tables.show(told.tables.filter((table) => table.entries > 0 || table.lookups > 0 || table.table === 0).map(tableRow));
    const wanted = filter.value.trim().toLowerCase();
    const found = told.flows.filter((entry) => wanted === "" || flowText(entry).toLowerCase().includes(wanted));
    flows.show(withKeys(found.slice(0, LISTED).map(flowRow)));
    const hidden = found.length - LISTED;
    setText(more, hidden > 0 ? `${counted(hidden, "other entry", "other entries")}: filter to find them` : "");
    groups.show(told.groups.map(({ group, text }) => ({ key: String(group), cells: [text] })));
    meters.show(told.meters.map(({ meter, text }) => ({ key: String(meter), cells: [text] })));
  }

  async function read(): Promise<void> {
    const at = `api/v1/switches/${id}`;
    const is13 = live.network.switches.get(id)?.openflow !== "1.0";
    const { client } = live;
    const [tables, groups, meters] = await Promise.all([
      client.get<Table[]>(`${at}/tables`),
      is13 ? client.get<Group[]>(`${at}/groups`) : [],
      is13 ? client.get<Meter[]>(`${at}/meters`).catch(noneIfRefused<Meter>) : [],
    ]);
    const total = tables.reduce((sum, table) => sum + table.entries, 0);
    const isTooMany = told !== null && total > MOST_FOLLOWED;
    const flows = isTooMany ? (told?.flows ?? []) : await client.get<FlowEntry[]>(`${at}/flows`);
    told = { tables, groups, meters, flows };
  }

  async function refresh(): Promise<void> {
    try {
      await read();
      problem.hidden = true;
    } catch (error) {
      live.refuse(error);
      setText(problem, error instanceof Error ? error.message : String(error));
      problem.hidden = false;
    }
    if (!isClosed) show();
  }

  async function follow(): Promise<void> {
    if (live.isLive && !document.hidden && live.network.switches.get(id)?.goneMs === null) await refresh();
    if (!isClosed) timer = setTimeout(() => void follow(), EVERY_MS);
  }

  filter.addEventListener("input", show);
  void follow();
  return {
    element,
    update: show,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** Returns an empty list for a refusal: a switch without meters answers with an error. */
function noneIfRefused<T>(error: unknown): T[] {
  if (error instanceof Refused && error.status !== 401) return [];
  throw error;
}

function tableRow(table: Table): GridRow {
  const { table: number, entries, lookups, matched, form } = table;
  return { key: String(number), cells: [String(number), count(entries), count(lookups), count(matched), clipped(form ?? "–", 200)] };
}

/** Formats an entry like ovs-ofctl. */
function flowText(entry: FlowEntry): string {
  const match = entry.match === "" ? "" : `,${entry.match}`;
  return `table=${entry.table},priority=${entry.priority}${match} actions=${entry.actions}`;
}

function flowRow(entry: FlowEntry): GridRow {
  const timeouts = [
    entry.idle_timeout > 0 ? `idle ${entry.idle_timeout} s` : "",
    entry.hard_timeout > 0 ? `hard ${entry.hard_timeout} s` : "",
  ].filter((text) => text !== "");
  const age = [passed(entry.age_seconds), ...timeouts].join(", ");
  const program = entry.program_name ?? entry.program ?? "–";
  const { table, priority, actions } = entry;
  return {
    key: `${table} ${priority} ${entry.match}`,
    cells: [
      String(table),
      String(priority),
      clipped(entry.match || "any packet", 400),
      clipped(actions, 400),
      count(entry.packets),
      count(entry.bytes),
      age,
      clipped(String(program), 40),
      entry.cookie,
    ],
  };
}

/** Makes keys unique: entries of one match and priority differ at least in their positions. */
function withKeys(rows: GridRow[]): GridRow[] {
  const seen = new Map<string, number>();
  return rows.map((row) => {
    const times = seen.get(row.key) ?? 0;
    seen.set(row.key, times + 1);
    return times === 0 ? row : { ...row, key: `${row.key} #${times}` };
  });
}

function portRows(context: Context, id: string, known: KnownSwitch | undefined): GridRow[] {
  const { network } = context.live;
  if (known === undefined) return [];
  return (network.ports.get(id)?.ports ?? []).map((port) => {
    const load = network.loads.of(`${id}:${port.port}`);
    const rate = (bps: number | undefined) => (bps === undefined ? "–" : scaled(bps, "bit/s"));
    const bytes = (total: number | null | undefined) => (typeof total === "number" ? scaled(total, "B") : "–");
    return {
      key: port.port,
      isBad: !port.up,
      cells: [
        port.port,
        clipped(port.name),
        port.up ? "up" : "down",
        port.speed_bps ? scaled(port.speed_bps, "bit/s") : "–",
        `${rate(load?.receivedBps)}, ${bytes(port.received_bytes)}`,
        `${rate(load?.sentBps)}, ${bytes(port.sent_bytes)}`,
        count((port.received_dropped ?? 0) + (port.sent_dropped ?? 0)),
        count((port.received_errors ?? 0) + (port.sent_errors ?? 0)),
      ],
    };
  });
}
