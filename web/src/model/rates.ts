// Rates of the controller's counters in the last ten minutes, read from /metrics while the page is visible.

import type { Live } from "./live";
import { type Buckets, quantile, samples } from "./metrics";

const EVERY_MS = 2_000;

/** The maximum share of time for reading. */
const SHARE = 0.1;

/** The number of readings kept, which is ten minutes. */
const KEPT = 300;

const WANTED = new Set([
  "switch_packet_ins_total",
  "switch_queued_bytes",
  "packet_in_duration_seconds_bucket",
  "shard_handler_panics_total",
  "background_panics_total",
]);

export interface ProgramRate {
  name: string;
  packetInsPerSecond: number;
  p50Ms: number | null;
  p99Ms: number | null;
}

/** The values at one time. */
export interface Point {
  /** Seconds since 1970, by the server's clock. */
  at: number;
  packetIns: Map<string, number>;
  queuedBytes: Map<string, number>;
  programs: ProgramRate[];
  panics: number;
}

interface Reading {
  atMs: number;
  packetIns: Map<string, number>;
  buckets: Map<string, Buckets>;
}

export class Rates {
  points: Point[] = [];
  private before: Reading | null = null;
  private watchers = new Set<() => void>();

  constructor(private readonly live: Live) {
    void this.run();
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  private async run(): Promise<never> {
    for (;;) {
      const began = performance.now();
      if (this.live.isLive && !document.hidden) await this.read();
      else this.before = null;
      const took = performance.now() - began;
      await new Promise((resolve) => setTimeout(resolve, Math.max(EVERY_MS - took, took / SHARE)));
    }
  }

  private async read(): Promise<void> {
    try {
      this.note(await this.live.client.text("metrics"));
      this.watchers.forEach((watcher) => watcher());
    } catch (error) {
      // The events report a lost connection.
      this.before = null;
      this.live.refuse(error);
    }
  }

  private note(text: string): void {
    const reading: Reading = { atMs: performance.now(), packetIns: new Map(), buckets: new Map() };
    const queuedBytes = new Map<string, number>();
    let panics = 0;
    for (const { name, labels, value } of samples(text, WANTED)) {
      const id = labels.dp_id ?? "";
      if (name === "switch_packet_ins_total") reading.packetIns.set(id, value);
      else if (name === "switch_queued_bytes") queuedBytes.set(id, value);
      else if (name.endsWith("_panics_total")) panics += value;
      else addBucket(reading.buckets, labels.program ?? "", labels.le ?? "", value);
    }
    if (this.before !== null) {
      this.points.push(pointOf(this.before, reading, queuedBytes, panics, this.live.client.now() / 1000));
      if (this.points.length > KEPT) this.points = this.points.slice(-KEPT);
    }
    this.before = reading;
  }
}

/** Adds a bucket to the sum over all shards. */
function addBucket(buckets: Map<string, Buckets>, program: string, le: string, value: number): void {
  const bound = le === "+Inf" ? Infinity : Number(le);
  const counts = buckets.get(program) ?? new Map<number, number>();
  counts.set(bound, (counts.get(bound) ?? 0) + value);
  buckets.set(program, counts);
}

function pointOf(before: Reading, now: Reading, queuedBytes: Map<string, number>, panics: number, at: number): Point {
  const seconds = (now.atMs - before.atMs) / 1000;
  // A counter that has decreased was reset.
  const grown = (count: number, then: number | undefined) => Math.max(0, count - (then ?? count)) / seconds;
  const packetIns = new Map([...now.packetIns].map(([id, count]) => [id, grown(count, before.packetIns.get(id))]));
  const programs = [...now.buckets].map(([name, buckets]) => {
    const then = before.buckets.get(name);
    const ms = (share: number) => {
      const bound = quantile(then, buckets, share);
      return bound === null ? null : bound * 1000;
    };
    const packetInsPerSecond = grown(buckets.get(Infinity) ?? 0, then?.get(Infinity));
    return { name, packetInsPerSecond, p50Ms: ms(0.5), p99Ms: ms(0.99) };
  });
  return { at, packetIns, queuedBytes, programs, panics };
}
