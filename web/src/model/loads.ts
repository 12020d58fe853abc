// The loads of ports, computed from their counters.

import type { SwitchPorts } from "../api/client";

export interface Load {
  receivedBps: number;
  sentBps: number;
  speedBps: number | null;
}

interface Reading {
  /** The time at which the switch read its counters, by this page's clock. */
  atMs: number;
  received: number;
  sent: number;
}

/** Readings that are closer together are considered equal. */
const SAME_MS = 300;

export class Loads {
  private readings = new Map<string, Reading>();
  private loads = new Map<string, Load>();

  note(told: readonly SwitchPorts[]): void {
    const readings = new Map<string, Reading>();
    const loads = new Map<string, Load>();
    for (const row of told) {
      const age = row.age_seconds;
      if (age === null || age === undefined) continue;
      const atMs = performance.now() - age * 1000;
      for (const port of row.ports) {
        const { received_bytes: received, sent_bytes: sent } = port;
        if (typeof received !== "number" || typeof sent !== "number") continue;
        const key = `${row.switch}:${port.port}`;
        this.noteOne(key, { atMs, received, sent }, port.speed_bps ?? null, readings, loads);
      }
    }
    // Forgets removed ports.
    this.readings = readings;
    this.loads = loads;
  }

  private noteOne(
    key: string,
    reading: Reading,
    speedBps: number | null,
    readings: Map<string, Reading>,
    loads: Map<string, Load>,
  ): void {
    const before = this.readings.get(key);
    const seconds = before === undefined ? 0 : (reading.atMs - before.atMs) / 1000;
    if (before !== undefined && seconds < SAME_MS / 1000) {
      readings.set(key, before);
      const load = this.loads.get(key);
      if (load !== undefined) loads.set(key, load);
      return;
    }
    readings.set(key, reading);
    if (before === undefined) return;
    const rate = (now: number, then: number) => ((now - then) * 8) / seconds;
    const [receivedBps, sentBps] = [rate(reading.received, before.received), rate(reading.sent, before.sent)];
    // Counters that have decreased were reset.
    if (receivedBps >= 0 && sentBps >= 0) loads.set(key, { receivedBps, sentBps, speedBps });
  }

  /** Returns the load of a port; `null` if it is not known. */
  of(end: string): Load | null {
    return this.loads.get(end) ?? null;
  }
}
