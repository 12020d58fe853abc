// The stream of server-sent events, read by `fetch`, which can send a token, unlike a browser's EventSource and WebSocket.

import type { Client } from "./client";
import { Unreachable } from "./client";

/** A port in an event, as Ryu prints it. */
export interface EventPort {
  dpid: string;
  port_no: string;
  name: string;
}

/** The data of an event; its kind determines which fields are present. */
export interface EventData {
  dpid?: string | null;
  port_no?: string;
  name?: string;
  role?: string;
  src?: EventPort;
  dst?: EventPort;
  mac?: string;
  ipv4?: string[];
  port?: EventPort;
  from?: string;
  count?: number;
  code?: string;
  program?: string | null;
  reason?: string;
  programs?: string[];
}

export interface Happened {
  kind: string;
  data: EventData;
}

/** The interface sends a comment every 15 s without events; after this time without one, the connection is lost. */
const SILENCE_MS = 40_000;

/** Follows the events until the stream ends, which is always an error. Calls `opened` once the stream has started. */
export async function follow(
  client: Client,
  signal: AbortSignal,
  opened: () => void,
  tell: (happened: Happened) => void,
): Promise<never> {
  const stream = await client.stream("api/v1/events", signal);
  opened();
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await read(reader);
    if (done) throw new Unreachable("the controller has closed the connection");
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const happened = parse(part);
      if (happened !== null) tell(happened);
    }
  }
}

async function read(reader: ReadableStreamDefaultReader<string>) {
  let timer = 0;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unreachable("the controller is silent")), SILENCE_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    void reader.cancel().catch(() => undefined);
    throw error instanceof Unreachable ? error : new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Parses the lines of an event; returns `null` for a comment or an unknown event. */
export function parse(part: string): Happened | null {
  let kind = "";
  let data = "";
  for (const line of part.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    if (line.startsWith("data:")) data += line.slice(5);
  }
  if (kind === "" || data === "") return null;
  try {
    const told: unknown = JSON.parse(data);
    return typeof told === "object" && told !== null ? { kind, data: told } : null;
  } catch {
    return null;
  }
}
