// Requests to the northbound interface.

import type { components } from "./schema";

type Schemas = components["schemas"];
export type Switch = Schemas["Switch"];
export type SwitchPorts = Schemas["SwitchPorts"];
export type Port = Schemas["Port"];
export type Table = Schemas["Table"];
export type FlowEntry = Schemas["FlowEntry"];
export type Group = Schemas["Group"];
export type Meter = Schemas["Meter"];
export type Host = Schemas["Host"];
export type Link = Schemas["Link"];
export type Hop = Schemas["Hop"];
export type Trace = Schemas["Trace"];
export type TraceHop = Schemas["TraceHop"];
export type FlowChange = Schemas["FlowChange"];
export type RoleChange = Schemas["RoleChange"];
export type ControllerState = Schemas["ControllerState"];
export type Panic = Schemas["Panic"];
export type Emulated = Schemas["Emulated"];
export type EmulatedLink = Schemas["EmulatedLink"];
export type PingResults = Schemas["PingResults"];

/** The time limit of a response. The interface itself waits 20 s for a switch. */
const PATIENCE_MS = 25_000;

/** A refusal by the interface, with its error message. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field: string | null = null,
    readonly example: string | null = null,
  ) {
    super(message);
  }
}

/** The interface cannot be reached. */
export class Unreachable extends Error {}

/** A client of the interface that serves this page. The token is kept only in memory. */
export class Client {
  private token: string | null = null;
  /** How far the server's clock is ahead of the browser's. */
  private aheadMs = 0;
  /** Whether the token may only read, according to the last response. */
  isReadOnly = false;

  setToken(token: string | null): void {
    this.token = token;
  }

  /** Returns the server's time, as precisely as its responses contain it: the browser's clock may be wrong. */
  now(): number {
    return Date.now() + this.aheadMs;
  }

  /** Sends a GET request for JSON. */
  async get<T>(path: string): Promise<T> {
    const response = await this.send(path, {});
    return (await received(() => response.json())) as T;
  }

  /** Sends a GET request for text. */
  async text(path: string): Promise<string> {
    const response = await this.send(path, {});
    return received(() => response.text());
  }

  /** Sends a POST request with a JSON body. */
  async post(path: string, body: unknown): Promise<Response> {
    const headers = { "Content-Type": "application/json" };
    return this.send(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  /** Sends a POST request whose body and response are JSON. */
  async ask<T>(path: string, body: unknown): Promise<T> {
    const response = await this.post(path, body);
    return (await received(() => response.json())) as T;
  }

  /** Sends a GET request whose response is read as it arrives. */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const response = await this.send(path, { signal });
    if (response.body === null) throw new Unreachable("the response has no body");
    return response.body;
  }

  private async send(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.token !== null) headers.set("Authorization", `Bearer ${this.token}`);
    const signal = init.signal ?? AbortSignal.timeout(PATIENCE_MS);
    const response = await received(() =>
      fetch(new URL(path, document.baseURI), { cache: "no-store", credentials: "omit", ...init, headers, signal }),
    );
    this.readClock(response);
    this.isReadOnly = response.headers.get("Urtica-Access") === "read-only";
    if (!response.ok) throw await refusal(response);
    return response;
  }

  private readClock(response: Response): void {
    const date = Date.parse(response.headers.get("Date") ?? "");
    const aheadMs = date - Date.now();
    // The header has whole seconds, so small differences mean nothing.
    if (!Number.isNaN(date) && Math.abs(aheadMs - this.aheadMs) > 2_000) this.aheadMs = aheadMs;
  }
}

/** Converts all errors while receiving into one, whatever browsers call them. */
async function received<T>(receive: () => Promise<T>): Promise<T> {
  try {
    return await receive();
  } catch (error) {
    throw new Unreachable(error instanceof Error ? error.message : String(error));
  }
}

async function refusal(response: Response): Promise<Refused> {
  const body: unknown = await response.json().catch(() => null);
  const told = typeof body === "object" && body !== null ? (body as Partial<Schemas["ApiError"]>) : {};
  const sentence = told.error ?? `the controller answers with status ${response.status}`;
  return new Refused(response.status, sentence, told.field ?? null, told.example ?? null);
}
