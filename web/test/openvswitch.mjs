// A test's own Open vSwitch with a user-space datapath, in a network namespace, and hosts in other namespaces.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { BOUND, atEnd } from "./lab.mjs";

const TOOLS = ["ip", "ping", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];
const SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema";

/** Returns a sentence about missing requirements, or `false` if there are none. With CI=true, missing ones are an error. */
export function missing() {
  const isInstalled = (tool) => (process.env.PATH ?? "").split(":").some((folder) => existsSync(`${folder}/${tool}`));
  const lacks = process.getuid() === 0 ? TOOLS.find((tool) => !isInstalled(tool)) : "root";
  if (lacks === undefined) return false;
  const sentence = `needs ${lacks} (tools/setup)`;
  assert.notEqual(process.env.CI, "true", sentence);
  return sentence;
}

export class OpenVswitch {
  folder = mkdtempSync(`${tmpdir()}/urtica-web-ovs-`);
  #room = `uweb${process.pid}`;
  #rooms = [];
  #environment = { ...process.env, OVS_RUNDIR: this.folder, OVS_LOGDIR: this.folder, OVS_DBDIR: this.folder };

  constructor(t) {
    atEnd(t, () => {
      this.#rooms.forEach((room) => run("ip", ["netns", "del", room]));
      rmSync(this.folder, { recursive: true, force: true });
    });
    this.#addRoom(this.#room);
  }

  /** Starts it, without bridges. */
  async start(t) {
    this.run("ovsdb-tool", ["create", `${this.folder}/conf.db`, SCHEMA]);
    await this.#daemon(t, "ovsdb-server", [`${this.folder}/conf.db`, `--remote=punix:${this.folder}/db.sock`]);
    // Its socket exists before it listens.
    await eventually(() => listens(`${this.folder}/db.sock`));
    this.vsctl("--no-wait", "init");
    this.switch = await this.#daemon(t, "ovs-vswitchd", []);
  }

  #addRoom(name) {
    run("ip", ["netns", "add", name]);
    this.#rooms.push(name);
    run("ip", ["-n", name, "link", "set", "lo", "up"]);
  }

  async #daemon(t, program, options) {
    const child = spawn("ip", ["netns", "exec", this.#room, program, "--pidfile", ...options], { env: this.#environment, stdio: "ignore" });
    const ended = new Promise((resolve) => child.on("exit", resolve));
    atEnd(t, async () => {
      child.kill("SIGTERM");
      await ended;
    });
    await eventually(() => existsSync(`${this.folder}/${program}.pid`));
    return child;
  }

  /** Runs a command in its namespace. */
  run(program, options) {
    return run("ip", ["netns", "exec", this.#room, program, ...options], this.#environment);
  }

  vsctl(...options) {
    return this.run("ovs-vsctl", ["--timeout=60", ...options]);
  }

  /** Runs ovs-ofctl with OpenFlow 1.3. */
  ofctl(...options) {
    return this.run("ovs-ofctl", ["-O", "OpenFlow13", ...options]);
  }

  /** Adds a bridge with this number, named s1, s2, …, with a controller, and these devices as its ports. */
  addBridge(number, devices, controller) {
    const name = `s${number}`;
    const id = number.toString(16).padStart(16, "0");
    const settings = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13", `other-config:datapath-id=${id}`];
    const ports = devices.flatMap((device) => ["--", "add-port", name, device]);
    this.vsctl("add-br", name, "--", "set", "bridge", name, ...settings, ...ports, "--", "set-controller", name, controller);
  }

  /** Adds two devices in its namespace that are each other's peers. */
  addLink(a, b) {
    run("ip", ["-n", this.#room, "link", "add", a, "type", "veth", "peer", "name", b]);
    [a, b].forEach((device) => this.setLink(device, "up"));
  }

  setLink(device, state) {
    run("ip", ["-n", this.#room, "link", "set", device, state]);
  }

  /** Adds a host with this address in its own namespace, linked to a device here. */
  addHost(name, device, address) {
    const room = `${this.#room}${name}`;
    this.#addRoom(room);
    run("ip", ["-n", this.#room, "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", room]);
    this.setLink(device, "up");
    run("ip", ["-n", room, "address", "add", `${address}/24`, "dev", "eth0"]);
    run("ip", ["-n", room, "link", "set", "eth0", "up"]);
    return room;
  }

  /** Returns whether a ping from a host's namespace is answered. */
  pings(room, address) {
    try {
      run("ip", ["netns", "exec", room, "ping", "-c", "1", "-W", "1", address]);
      return true;
    } catch {
      return false;
    }
  }
}

function run(program, options, env = process.env) {
  return execFileSync(program, options, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Whether a program listens at a Unix socket. */
function listens(path) {
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}

/** Waits until a condition holds. */
export async function eventually(isSo) {
  for (const end = performance.now() + BOUND; performance.now() < end; ) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`it never was: ${isSo}`);
}
