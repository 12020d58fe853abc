// The log of events, as sentences.

import type { EventData, EventPort, Happened } from "../api/events";
import { portOf, switchOf } from "./network";

export interface Entry {
  number: number;
  /** The time, by the server's clock. */
  timeMs: number;
  kind: string;
  text: string;
  /** The subjects: switches (their ids), and a host (its MAC address). */
  about: string[];
}

/** The maximum number of entries. */
const KEPT = 2_000;

const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });

export class EventLog {
  private kept: Entry[] = [];
  private next = 0;

  add(timeMs: number, kind: string, text: string, about: string[] = []): void {
    this.next += 1;
    this.kept.push({ number: this.next, timeMs, kind, text, about });
    // Removed in larger steps, since removing from the front moves all other entries.
    if (this.kept.length > KEPT + 200) this.kept = this.kept.slice(-KEPT);
  }

  /** Returns the entries that match, newest first. */
  wanted(isWanted: (entry: Entry) => boolean): Entry[] {
    return this.kept.slice(-KEPT).filter(isWanted).reverse();
  }
}

/** Converts a port number from eight hexadecimal digits. */
export function portNumber(hex: string | undefined): string {
  const number = Number.parseInt(hex ?? "", 16);
  if (number === 0xfffffffe) return "LOCAL";
  return Number.isNaN(number) ? "?" : String(number);
}

/** Describes an event, with the switches' labels. */
export function sentence(happened: Happened, labelOf: (id: string) => string): string {
  const { kind, data } = happened;
  const name = (id: string | null | undefined) => (id === null || id === undefined ? "?" : labelOf(id));
  const end = (port: EventPort | undefined) => `${name(port?.dpid)}:${portNumber(port?.port_no)}`;
  const from = (end: string) => `${name(switchOf(end))}:${portOf(end)}`;
  const port = () => `port ${portNumber(data.port_no)} (${data.name ?? ""}) of switch ${name(data.dpid)}`;
  const host = () => `host ${data.ipv4?.[0] ?? data.mac ?? "?"}`;
  switch (kind) {
    case "switch_up":
      return `switch ${name(data.dpid)} has connected`;
    case "switch_down":
      return `switch ${name(data.dpid)} has left`;
    case "port_added":
      return `${port()} was added`;
    case "port_removed":
      return `${port()} was removed`;
    case "port_changed":
      return `${port()} has changed`;
    case "role_changed":
      return `the role at switch ${name(data.dpid)} is ${data.role ?? "?"}`;
    case "link_up":
      return `link ${end(data.src)} to ${end(data.dst)} is up`;
    case "link_down":
      return `link ${end(data.src)} to ${end(data.dst)} is down`;
    case "host_joined":
      return `${host()} was found at ${end(data.port)}`;
    case "host_moved":
      return `${host()} has moved to ${end(data.port)}, from ${from(data.from ?? "?:?")}`;
    case "host_left":
      return `${host()} has left ${end(data.port)}`;
    case "refused":
      return `switch ${name(data.dpid)} has refused a message: ${data.code ?? "?"}, its ${ordinal(data.count ?? 0)} refusal`;
    case "program_panicked":
      return `program ${data.program ?? "without a name"} has panicked${data.dpid ? ` at switch ${name(data.dpid)}` : ""}: ${data.reason ?? ""}`;
    case "programs_changed":
      return `now these programs run: ${data.programs?.join(", ") || "none"}`;
    case "missed":
      return `${data.count ?? "some"} events were missed: too many at once`;
    default:
      return kind;
  }
}

/** Returns the switches and the host that an event is about. */
export function subjects(data: EventData): string[] {
  const found = [data.dpid, data.src?.dpid, data.dst?.dpid, data.port?.dpid, data.mac];
  return found.filter((subject) => subject !== undefined && subject !== null);
}

/** Formats an ordinal: 1st, 2nd, 3rd, 4th, … 11th. */
function ordinal(number: number): string {
  const endings: Record<string, string> = { one: "st", two: "nd", few: "rd" };
  return `${number}${endings[ORDINALS.select(number)] ?? "th"}`;
}
