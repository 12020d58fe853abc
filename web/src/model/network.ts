// The network as last read from the interface, and the switches and links that have recently gone.

import type { Emulated, Host, Link, Switch, SwitchPorts } from "../api/client";
import { Loads } from "./loads";

/** The time for which a lost switch or link is shown as gone. */
const REMEMBERED_MS = 10 * 60_000;

export interface KnownSwitch extends Switch {
  /** Its name for people. */
  label: string;
  /** The number of its ports that are down. */
  portsDown: number;
  /** The time of its disconnection, by `performance.now()`; `null` while it is connected. */
  goneMs: number | null;
}

/** Both directions of a link. */
export interface KnownLink {
  key: string;
  /** Its ends: a switch and a port. */
  a: string;
  b: string;
  goneMs: number | null;
}

export type KnownHost = Host & { key: string };

/** A list that an event may change. */
export type List = "switches" | "links" | "hosts" | "ports";
export const LISTS: readonly List[] = ["ports", "switches", "links", "hosts"];

/** Returns the switch of an end (`0000000000000001:3`). */
export function switchOf(end: string): string {
  return end.slice(0, end.lastIndexOf(":"));
}

/** Returns the port of an end. */
export function portOf(end: string): string {
  return end.slice(end.lastIndexOf(":") + 1);
}

export class Network {
  switches = new Map<string, KnownSwitch>();
  links = new Map<string, KnownLink>();
  hosts = new Map<string, KnownHost>();
  ports = new Map<string, SwitchPorts>();
  programs: string[] = [];
  /** The parts of the network, if the controller's program emulates it; otherwise the lists are empty. */
  emulated: Emulated = { switches: [], hosts: [], links: [] };
  readonly loads = new Loads();
  private watchers = new Set<() => void>();

  /** Calls `watcher` after every change. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  changed(): void {
    this.watchers.forEach((watcher) => watcher());
  }

  setSwitches(told: readonly Switch[]): void {
    const now = performance.now();
    const switches = new Map<string, KnownSwitch>();
    for (const row of told) {
      switches.set(row.id, { ...row, label: this.labelOf(row), portsDown: this.downAt(row.id), goneMs: null });
    }
    for (const [id, known] of this.switches) {
      if (!switches.has(id)) switches.set(id, { ...known, goneMs: known.goneMs ?? now });
    }
    this.switches = switches;
    this.forgetGone();
    this.changed();
  }

  setLinks(told: readonly Link[]): void {
    const now = performance.now();
    const links = new Map<string, KnownLink>();
    for (const { from, to } of told) {
      const [a, b] = from < to ? [from, to] : [to, from];
      links.set(`${a}|${b}`, { key: `${a}|${b}`, a, b, goneMs: null });
    }
    const used = new Set([...links.values()].flatMap(({ a, b }) => [a, b]));
    for (const [key, known] of this.links) {
      // A port with another link now was replugged.
      const isReplaced = used.has(known.a) || used.has(known.b);
      if (!links.has(key) && !isReplaced) links.set(key, { ...known, goneMs: known.goneMs ?? now });
    }
    this.links = links;
    this.forgetGone();
    this.changed();
  }

  setHosts(told: readonly Host[]): void {
    this.hosts = new Map(
      told.map((host) => {
        const key = host.vlan === null || host.vlan === undefined ? host.mac : `${host.mac}/${host.vlan}`;
        return [key, { ...host, key }];
      }),
    );
    this.changed();
  }

  setEmulated(told: Emulated): void {
    this.emulated = told;
    this.changed();
  }

  setPorts(told: readonly SwitchPorts[]): void {
    this.forgetGone();
    this.ports = new Map(told.map((row) => [row.switch, row]));
    this.loads.note(told);
    for (const known of this.switches.values()) {
      known.label = this.labelOf(known);
      known.portsDown = this.downAt(known.id);
    }
    this.changed();
  }

  /** Forgets what has been gone for long. Also called with counters, since no other list is read on a quiet network. */
  private forgetGone(): void {
    const oldest = performance.now() - REMEMBERED_MS;
    for (const known of [this.switches, this.links]) {
      for (const [key, { goneMs }] of known) {
        if (goneMs !== null && goneMs <= oldest) known.delete(key);
      }
    }
  }

  /** Returns a switch's label: the name of its local port, the common part of its other ports' names (`s1-eth2`), or its id. */
  private labelOf(row: Switch): string {
    if (row.name !== null && row.name !== undefined && row.name !== "") return row.name;
    const ports = this.ports.get(row.id)?.ports ?? [];
    const named = ports.map((port) => /^(.+)-eth\d+$/.exec(port.name)?.[1]);
    const first = named[0];
    if (first !== undefined && named.every((name) => name === first)) return first;
    return row.id.replace(/^0+(?=.)/, "");
  }

  private downAt(id: string): number {
    const ports = this.ports.get(id)?.ports ?? [];
    return ports.filter((port) => !port.up && /^\d+$/.test(port.port)).length;
  }

  /** Returns the load of a link in its fuller direction, in bit/s and as a share of its capacity, if these are known. */
  loadOf(link: KnownLink): { bps: number; share: number | null } | null {
    const ends = [link.a, link.b].map((end) => this.loads.of(end));
    const known = ends.filter((end) => end !== null);
    if (known.length === 0) return null;
    const bps = Math.max(...known.map((end) => Math.max(end.sentBps, end.receivedBps)));
    const speeds = known.map((end) => end.speedBps).filter((speed) => speed !== null);
    return { bps, share: speeds.length === 0 ? null : bps / Math.min(...speeds) };
  }

  /** Returns a host's name for people: its first address. */
  static hostName(host: Host): string {
    return host.ipv4[0] ?? host.ipv6[0] ?? host.mac;
  }
}
