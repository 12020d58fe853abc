// A fake controller: the built page, and an interface with answers that tests choose. For names, rates and sizes that no
// real network here has.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { atEnd } from "./lab.mjs";

const DIST = new URL("../dist/", import.meta.url);
// The real server's policy, so that tests find what it would refuse, too.
const SERVER = readFileSync(new URL("../../crates/northbound/src/web.rs", import.meta.url), "utf8");
const POLICY = /const POLICY: &str = "([^"]*)"/.exec(SERVER)[1].replace(/\\\n\s*/g, "");
const TYPES = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html" };

export class Fake {
  /** The lists; a function creates a list for each request. */
  lists = { switches: [], links: [], hosts: [], ports: [], programs: [] };
  /** The state of the controller, if known. */
  controller = null;
  /** Returns the text of /metrics at each request. */
  metrics = () => "";
  /** The parts of the network, if it is emulated. */
  emulation = { switches: [], hosts: [], links: [] };
  /** How far the controller's clock is ahead. */
  aheadMs = 0;
  /** The number of requests, by path. */
  asked = new Map();
  #streams = new Set();
  #server = createServer((request, response) => this.#answer(request, response));

  /** Listens until the test ends; returns the page's address. */
  async start(t) {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    atEnd(t, () => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  #answer(request, response) {
    const { pathname } = new URL(request.url, "http://localhost");
    this.asked.set(pathname, (this.asked.get(pathname) ?? 0) + 1);
    response.setHeader("Date", new Date(Date.now() + this.aheadMs).toUTCString());
    if (pathname === "/api/v1/events") return this.#stream(request, response);
    const list = this.lists[pathname.replace("/api/v1/", "")];
    if (list !== undefined) return sendJson(response, 200, typeof list === "function" ? list() : list);
    if (pathname === "/api/v1/controller" && this.controller !== null) return sendJson(response, 200, this.controller);
    if (pathname === "/api/v1/emulation") return sendJson(response, 200, this.emulation);
    if (pathname === "/metrics") return response.end(this.metrics());
    if (pathname.startsWith("/api/")) return sendJson(response, 404, { error: "there is no such thing" });
    return sendFile(response, pathname === "/" ? "index.html" : pathname.slice(1));
  }

  #stream(request, response) {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(":\n\n");
    this.#streams.add(response);
    request.on("close", () => this.#streams.delete(response));
  }

  /** Waits until a path has been requested this many times. */
  async whenAsked(path, times) {
    while ((this.asked.get(path) ?? 0) < times) await once(this.#server, "request");
  }

  /** Ends all streams of events. */
  hangUp() {
    for (const stream of this.#streams) stream.destroy();
  }

  /** Sends an event to all pages. */
  tell(kind, data) {
    for (const stream of this.#streams) stream.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}

function sendJson(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

function sendFile(response, path) {
  const file = readFileSync(new URL(path, DIST));
  response.writeHead(200, {
    "Content-Type": TYPES[path.split(".").pop()] ?? "text/plain",
    "Content-Security-Policy": POLICY,
  });
  response.end(file);
}

export function dpid(number) {
  return number.toString(16).padStart(16, "0");
}

export function aSwitch(number, name = null, role = "equal") {
  return { id: dpid(number), name, openflow: "1.3", role, peer: "127.0.0.1:1", tables: 8, ports: 4 };
}

export function aPort(number, name, more = {}) {
  const counts = { received_packets: 0, sent_packets: 0, received_bytes: 0, sent_bytes: 0 };
  const lost = { received_dropped: 0, sent_dropped: 0, received_errors: 0, sent_errors: 0 };
  return { port: String(number), name, mac: "02:00:00:00:00:01", up: true, speed_bps: 1e9, ...counts, ...lost, ...more };
}

export function aHost(number, at, ipv4) {
  const mac = `02:00:00:00:${(number >> 8).toString(16).padStart(2, "0")}:${(number & 255).toString(16).padStart(2, "0")}`;
  return { mac, vlan: null, port: at, ipv4: [ipv4], ipv6: [], router: false };
}

/** Returns two switches with a link and a host. */
export function small() {
  const fake = new Fake();
  fake.lists = {
    switches: [aSwitch(1, "left"), aSwitch(2, "right")],
    links: aLink(`${dpid(1)}:1`, `${dpid(2)}:1`),
    hosts: [aHost(1, `${dpid(1)}:2`, "10.0.0.1")],
    ports: [1, 2].map((id) => ({ switch: dpid(id), age_seconds: 0.1, ports: [aPort(1, `s${id}-eth1`)] })),
    programs: ["l2"],
  };
  return fake;
}

/** Returns both directions of a link. */
export function aLink(a, b) {
  return [
    { from: a, to: b },
    { from: b, to: a },
  ];
}
