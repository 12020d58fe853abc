// Keeps the network equal to the controller's: follows events, and reads the lists that may have changed.
//
// After an event that may change a list, the whole list is read again, so that no order of events can leave a state that
// differs from the controller's. The list is read at once after the first event, and at intervals while there are many. When
// the connection fails, the state is marked as outdated until everything has been read again.

import type { Emulated, Host, Link, Switch, SwitchPorts } from "../api/client";
import { Client, Refused } from "../api/client";
import { type Happened, follow } from "../api/events";
import { EventLog, sentence, subjects } from "./log";
import { LISTS, type List, Network } from "./network";

export type Status =
  | { kind: "connecting" }
  | { kind: "live" }
  /** The connection has failed; `againMs` is the time of the next try, by `performance.now()`. */
  | { kind: "lost"; reason: string; sinceMs: number | null; againMs: number }
  /** The controller requires another token. */
  | { kind: "locked"; reason: string };

/** The interval of reading a list: several times the duration of reading it, within these bounds. */
const REREAD_MS = { shortest: 250, longest: 2_000, times: 3 };

/** The interval of reading the ports' counters. */
const COUNTERS_MS = 2_000;

/** The delay before connecting again, doubled with each failure. */
const BACK_OFF_MS = { first: 500, longest: 15_000 };

/** A connection that lasts this long counts as a success. */
const SETTLED_MS = 5_000;

const READ_BY: Record<List, string> = {
  switches: "api/v1/switches",
  links: "api/v1/links",
  hosts: "api/v1/hosts",
  ports: "api/v1/ports",
};

export class Live {
  readonly network = new Network();
  readonly log = new EventLog();
  status: Status = { kind: "connecting" };
  private watchers = new Set<() => void>();
  private failures = 0;
  /** The time at which the state was last known to be current. */
  private liveMs: number | null = null;
  private connection: Connection | null = null;
  private timer = 0;

  constructor(readonly client: Client) {}

  /** Whether the shown state is the controller's current state. */
  get isLive(): boolean {
    return this.status.kind === "live";
  }

  /** Calls `watcher` whenever the status changes. */
  watch(watcher: () => void): void {
    this.watchers.add(watcher);
  }

  /** Connects, and connects again after each failure. */
  connect(): void {
    clearTimeout(this.timer);
    this.connection?.close();
    const connection = new Connection(this);
    this.connection = connection;
    if (this.status.kind === "locked") this.set({ kind: "connecting" });
    const began = performance.now();
    void connection.run().catch((error: unknown) => {
      if (this.connection !== connection) return;
      if (performance.now() - began > SETTLED_MS) this.failures = 0;
      this.lose(error);
    });
  }

  /** Handles the refusal of another request; a missing or invalid token ends the connection. */
  refuse(error: unknown): void {
    if (error instanceof Refused && error.status === 401) this.lose(error);
  }

  /** Reads the state of an emulated network again. */
  readEmulation(): void {
    this.connection?.emulation.want();
  }

  settle(): void {
    this.set({ kind: "live" });
  }

  private lose(error: unknown): void {
    if (this.isLive) this.liveMs = performance.now();
    this.connection?.close();
    this.connection = null;
    clearTimeout(this.timer);
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof Refused && error.status === 401) {
      this.client.setToken(null);
      this.set({ kind: "locked", reason });
      return;
    }
    const wait = Math.min(BACK_OFF_MS.first * 2 ** this.failures, BACK_OFF_MS.longest);
    this.failures += 1;
    // The random part spreads the reconnections of all pages after a restart of the controller.
    const waitMs = wait * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => this.connect(), waitMs);
    this.set({ kind: "lost", reason, sinceMs: this.liveMs, againMs: performance.now() + waitMs });
  }

  private set(status: Status): void {
    this.status = status;
    this.watchers.forEach((watcher) => watcher());
    this.network.changed();
  }
}

/** One connection, until it fails. */
class Connection {
  private readonly abort = new AbortController();
  private readonly readers: Record<List, Reader>;
  /** Separate from the lists: a busy network answers late, and no list waits for it. */
  readonly emulation = new Reader(() => this.readEmulation(), (error) => this.live.refuse(error));
  private fail: (error: unknown) => void = () => undefined;
  /** The lists changed by events before everything has been read; `null` afterwards. */
  private changedEarly: Set<List> | null = new Set();

  constructor(private readonly live: Live) {
    const reader = (list: List) => new Reader(() => this.read(list), (error) => this.fail(error));
    this.readers = {
      switches: reader("switches"),
      links: reader("links"),
      hosts: reader("hosts"),
      ports: reader("ports"),
    };
  }

  async run(): Promise<never> {
    const failed = new Promise<never>((_, reject) => (this.fail = reject));
    const followed = follow(
      this.live.client,
      this.abort.signal,
      () => void this.begin().catch((error: unknown) => this.fail(error)),
      (happened) => this.handle(happened),
    );
    return Promise.race([followed, failed]);
  }

  close(): void {
    this.abort.abort();
    LISTS.forEach((list) => this.readers[list].stop());
    this.emulation.stop();
  }

  private get isClosed(): boolean {
    return this.abort.signal.aborted;
  }

  /** Reads everything; only then is the state current. Lists changed by events in the meantime are read again. */
  private async begin(): Promise<void> {
    const { client, network } = this.live;
    const programs = client.get<string[]>("api/v1/programs");
    const told = await Promise.all(LISTS.map((list) => client.get<unknown>(READ_BY[list])));
    network.programs = await programs;
    if (this.isClosed) return;
    // Set all lists at once: a partly known network would be laid out differently.
    LISTS.forEach((list, place) => this.set(list, told[place]));
    this.changedEarly?.forEach((list) => this.readers[list].want());
    this.changedEarly = null;
    this.live.settle();
    this.emulation.want();
    void this.poll().catch((error: unknown) => this.fail(error));
  }

  private async poll(): Promise<void> {
    while (!this.isClosed) {
      await new Promise((resolve) => setTimeout(resolve, COUNTERS_MS));
      // A hidden page needs no counters. Events continue, since they are few.
      if (!document.hidden && !this.isClosed) await this.read("ports");
    }
  }

  private async read(list: List): Promise<void> {
    const told = await this.live.client.get<unknown>(READ_BY[list]);
    if (!this.isClosed) this.set(list, told);
  }

  private async readEmulation(): Promise<void> {
    const { client, network } = this.live;
    const told = await client.get<Emulated>("api/v1/emulation");
    if (!this.isClosed) network.setEmulated(told);
  }

  private set(list: List, told: unknown): void {
    const { network } = this.live;
    if (list === "switches") network.setSwitches(told as Switch[]);
    if (list === "links") network.setLinks(told as Link[]);
    if (list === "hosts") network.setHosts(told as Host[]);
    if (list === "ports") network.setPorts(told as SwitchPorts[]);
  }

  private handle(happened: Happened): void {
    if (this.isClosed) return;
    const { network, log, client } = this.live;
    // The stream starts with the switches that are already up.
    const id = happened.data.dpid ?? "";
    if (happened.data.programs !== undefined) network.programs = happened.data.programs;
    const isNews = happened.kind !== "switch_up" || this.live.isLive || !network.switches.has(id);
    const labelOf = (dpid: string) => network.switches.get(dpid)?.label ?? dpid.replace(/^0+(?=.)/, "");
    if (isNews) log.add(client.now(), happened.kind, sentence(happened, labelOf), subjects(happened.data));
    for (const list of changedBy(happened.kind)) {
      if (this.changedEarly === null) this.readers[list].want();
      else this.changedEarly.add(list);
    }
    if (network.emulated.switches.length > 0 && !happened.kind.startsWith("host")) this.emulation.want();
    network.changed();
  }
}

/** Returns the lists that an event of this kind may have changed. */
function changedBy(kind: string): readonly List[] {
  switch (kind.split("_")[0]) {
    case "switch":
      return ["switches", "ports", "links"];
    case "port":
      return ["ports", "switches"];
    case "role":
      return ["switches"];
    case "link":
      return ["links"];
    case "host":
      return ["hosts"];
    default:
      return LISTS;
  }
}

/** Reads something on request: at once, but at limited intervals. */
class Reader {
  private isWanted = false;
  private isBusy = false;
  private isStopped = false;

  constructor(
    private readonly read: () => Promise<void>,
    private readonly fail: (error: unknown) => void,
  ) {}

  want(): void {
    this.isWanted = true;
    if (!this.isBusy) void this.run().catch(this.fail);
  }

  stop(): void {
    this.isStopped = true;
  }

  private async run(): Promise<void> {
    this.isBusy = true;
    try {
      while (this.isWanted && !this.isStopped) {
        this.isWanted = false;
        const began = performance.now();
        await this.read();
        const { shortest, longest, times } = REREAD_MS;
        const pause = Math.min(longest, Math.max(shortest, (performance.now() - began) * times));
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    } finally {
      this.isBusy = false;
    }
  }
}
