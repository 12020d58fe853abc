// Common parts of the page's tests: a network with its controller, a browser, and a page whose errors fail the test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const URTICA = process.env.URTICA ?? `${ROOT}target/debug/urtica`;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The timeout of all waits, which only a failing test reaches. */
export const BOUND = 60_000;

/** The folder of pictures for the documentation. */
export const PICTURES = process.env.PICTURES === "1" ? `${ROOT}docs/` : null;

const ends = new WeakMap();

/** Performs an action at a test's end; the last one registered runs first. */
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
        // Run the other actions, too: a program that keeps running would keep the tests from ending.
        failed ??= error;
      }
    }
    if (failed !== undefined) throw failed;
  });
}

/** Starts a browser. Without one the tests fail instead of being skipped. */
export async function browse() {
  assert.ok(existsSync(CHROMIUM), `${CHROMIUM} is missing: type 'make setup', or set CHROMIUM`);
  // Chromium has no sandbox for root; it only loads our own page here.
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

/** Opens a page whose errors, and violations of its Content-Security-Policy, fail the test. `expected` are patterns of errors
 * that must occur; `prepare` is called with the page before it is opened. */
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

/** `urtica` with these arguments and environment variables; it ends with the test. */
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

  /** Waits until the output matches a pattern. */
  async says(pattern) {
    const found = pattern.exec(this.#told);
    if (found !== null) return found;
    const said = new Promise((resolve) => this.#waiting.push({ pattern, resolve }));
    const ended = this.ended.then(() => assert.fail(`it has ended before it wrote ${pattern}:\n${this.#told}`));
    return Promise.race([said, ended]);
  }

  /** Forgets the output so far. */
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

/** Starts a network with its controller; returns the program, and the address of its page. */
export async function network(t, topology, apps, options = []) {
  const program = new Program(t, ["net", topology, "--apps", apps, "--northbound=127.0.0.1:0", ...options]);
  const [, url] = await program.says(/the network in a browser: (\S+)/);
  await program.says(/switches are connected after/);
  return { program, url };
}

/** Makes every host ping every other, so that the controller knows all hosts. */
export async function pingAll(program) {
  program.forget();
  program.type("pingall");
  await program.says(/Results: .*received\)/);
}

/** Returns a list's items, which are found by the page's labels. */
export function items(page, title) {
  const section = page.locator(".lists section", { has: page.locator("h2", { hasText: title }) });
  return section.locator(".item");
}

/** Waits until a condition holds on the page; returns the time that this took. It does not hold while an element is missing. */
export async function until(page, isSo, argument) {
  const began = performance.now();
  const isThere = `try { return (${isSo})(argument); } catch (error) { if (error instanceof TypeError) return false; throw error; }`;
  await page.waitForFunction(new Function("argument", isThere), argument, { timeout: BOUND, polling: 10 });
  return performance.now() - began;
}

/** Returns whether the page shows the controller's current state. */
export const isLive = () => document.body.dataset.status === "live";

/** Returns whether the description of the picture contains a text. */
export const says = (text) => document.querySelector(".canvas").getAttribute("aria-label").includes(text);

/** Returns how an element of the picture is drawn. */
export function look(page, id) {
  return page.evaluate((id) => document.querySelector(".canvas").picture.look(id), id);
}

/** Waits until an element of the picture has a class, or no longer has it. */
export function untilClass(page, id, name, isThere = true) {
  const has = ([id, name, isThere]) => document.querySelector(".canvas").picture.look(id).classes.includes(name) === isThere;
  return until(page, has, [id, name, isThere]);
}

/** Returns the positions of the switches in the picture. */
export function places(page) {
  return page.evaluate(() => document.querySelector(".canvas").picture.places);
}
