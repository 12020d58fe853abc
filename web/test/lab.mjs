// What the tests of the page share: a network with its controller, a browser, and a page whose errors fail the test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const URTICA = process.env.URTICA ?? `${ROOT}target/debug/urtica`;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Longer than anything takes; whoever waits this long has failed. */
export const BOUND = 60_000;

/** Where pictures for the documentation go. */
export const PICTURES = process.env.PICTURES === "1" ? `${ROOT}docs/` : null;

const ends = new WeakMap();

/** Does something at a test's end: what was begun last ends first. */
export function atEnd(t, act) {
  const acts = ends.get(t) ?? [];
  acts.unshift(act);
  if (ends.has(t)) return;
  ends.set(t, acts);
  t.after(async () => {
    let failed;
    for (const act of acts) {
      try {
        await act();
      } catch (error) {
        // The others follow all the same: a program that goes on would keep the tests from ending.
        failed ??= error;
      }
    }
    if (failed !== undefined) throw failed;
  });
}

/** A browser. Without one the tests fail: they are not skipped. */
export async function browse() {
  assert.ok(existsSync(CHROMIUM), `${CHROMIUM} is missing: type 'make setup', or set CHROMIUM`);
  // Chromium has no sandbox for root; it sees nothing here but our own page.
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

/** A page whose errors, and refusals of its Content-Security-Policy, fail the test. `expected` are patterns of those that must come;
 * `prepare` is called with the page before it is opened. */
export async function open(browser, t, url, { expected = [], prepare = () => undefined, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(BOUND);
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => errors.push(`a dialog: ${dialog.message()}`));
  page.on("console", (message) => {
    const isExpected = expected.some((pattern) => pattern.test(message.text()));
    if (["error", "warning"].includes(message.type()) && !isExpected) errors.push(message.text());
  });
  atEnd(t, async () => {
    await context.close();
    assert.deepEqual(errors, []);
  });
  await prepare(page);
  await page.goto(url);
  return page;
}

/** `urtica` with these arguments, and variables of the environment; it ends with the test. */
export class Program {
  #child;
  #told = "";
  #waiting = [];

  constructor(t, args, variables = {}) {
    assert.ok(existsSync(URTICA), `${URTICA} is missing: type 'make web-test'`);
    this.#child = spawn(URTICA, args, { env: { ...process.env, RUST_LOG: "info", ...variables } });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => this.#hear(text));
    }
    this.ended = new Promise((resolve) => this.#child.on("exit", resolve));
    atEnd(t, () => this.kill());
  }

  #hear(text) {
    this.#told += text;
    this.#waiting = this.#waiting.filter(({ pattern, resolve }) => {
      const found = pattern.exec(this.#told);
      if (found !== null) resolve(found);
      return found === null;
    });
  }

  /** Waits until it has written something. */
  async says(pattern) {
    const found = pattern.exec(this.#told);
    if (found !== null) return found;
    const said = new Promise((resolve) => this.#waiting.push({ pattern, resolve }));
    const ended = this.ended.then(() => assert.fail(`it has ended before it wrote ${pattern}:\n${this.#told}`));
    return Promise.race([said, ended]);
  }

  /** Forgets what it has written. */
  forget() {
    this.#told = "";
  }

  type(line) {
    this.#child.stdin.write(`${line}\n`);
  }

  signal(name) {
    this.#child.kill(name);
  }

  async kill() {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}

/** A network with its controller, and the address of its page. */
export async function network(t, topology, apps, options = []) {
  const program = new Program(t, ["net", topology, "--apps", apps, "--northbound=127.0.0.1:0", ...options]);
  const [, url] = await program.says(/the network in a browser: (\S+)/);
  await program.says(/switches are connected after/);
  return { program, url };
}

/** Has every host ping every other, so that the controller knows all. */
export async function pingAll(program) {
  program.forget();
  program.type("pingall");
  await program.says(/Results: .*received\)/);
}

/** A list's items, as the page names them. */
export function items(page, title) {
  const section = page.locator(".lists section", { has: page.locator("h2", { hasText: title }) });
  return section.locator(".item");
}

/** Waits until something on the page is so; returns how long that took. It is not so while an element that it reads is missing. */
export async function until(page, isSo, argument) {
  const began = performance.now();
  const isThere = `try { return (${isSo})(argument); } catch (error) { if (error instanceof TypeError) return false; throw error; }`;
  await page.waitForFunction(new Function("argument", isThere), argument, { timeout: BOUND, polling: 10 });
  return performance.now() - began;
}

/** Whether the page shows the controller's state of now. */
export const isLive = () => document.body.dataset.status === "live";

/** Whether the picture, in words, has these. */
export const says = (text) => document.querySelector(".canvas").getAttribute("aria-label").includes(text);

/** How an element of the picture is drawn. */
export function look(page, id) {
  return page.evaluate((id) => document.querySelector(".canvas").picture.look(id), id);
}

/** Waits until an element of the picture has a class, or no longer has it. */
export function untilClass(page, id, name, isThere = true) {
  const has = ([id, name, isThere]) => document.querySelector(".canvas").picture.look(id).classes.includes(name) === isThere;
  return until(page, has, [id, name, isThere]);
}

/** Where the picture has its switches. */
export function places(page) {
  return page.evaluate(() => document.querySelector(".canvas").picture.places);
}
