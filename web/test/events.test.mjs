// The log of events: each kind's sentence, and the effect of the filters.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { aHost, aLink, aSwitch, dpid, small } from "./fake.mjs";
import { browse, isLive, items, open, until } from "./lab.mjs";
import { visit } from "./views.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

const port = (id, number) => ({ dpid: dpid(id), port_no: number.toString(16).padStart(8, "0"), name: `p${number}` });

/** Opens a page of three switches in a row with a host, and sends events, which are returned newest first. */
async function withEvents(t) {
  const fake = small();
  fake.lists.switches = [aSwitch(1, "left"), aSwitch(2, "right"), aSwitch(3, "third")];
  fake.lists.links = [...aLink(`${dpid(1)}:1`, `${dpid(2)}:1`), ...aLink(`${dpid(2)}:2`, `${dpid(3)}:1`)];
  fake.lists.hosts = [aHost(1, `${dpid(1)}:2`, "10.0.0.1"), aHost(2, `${dpid(3)}:2`, "10.0.0.2")];
  const page = await open(browser, t, await fake.start(t));
  await until(page, isLive);
  const [first, second] = fake.lists.hosts.map(({ mac, ipv4 }) => ({ mac, ipv4 }));
  fake.tell("host_joined", { ...first, port: port(1, 2) });
  fake.tell("host_moved", { ...first, port: port(2, 3), from: `${dpid(1)}:2` });
  fake.tell("host_left", { ...second, port: port(3, 2) });
  fake.tell("link_down", { src: port(1, 1), dst: port(2, 1) });
  fake.tell("link_up", { src: port(2, 2), dst: port(3, 1) });
  fake.tell("role_changed", { dpid: dpid(3), role: "secondary" });
  fake.tell("port_changed", port(2, 1));
  fake.tell("missed", { count: 17 });
  return { fake, page };
}

const SENTENCES = {
  missed: "17 events were missed: too many at once",
  port: "port 1 (p1) of switch right has changed",
  role: "the role at switch third is secondary",
  up: "link right:2 to third:1 is up",
  down: "link left:1 to right:1 is down",
  left: "host 10.0.0.2 has left third:2",
  moved: "host 10.0.0.1 has moved to right:3, from left:2",
  joined: "host 10.0.0.1 was found at left:2",
};

/** Waits until exactly these events are listed. */
function untilListed(page, ...names) {
  const are = (expected) => [...document.querySelectorAll("tr.event td:last-child")].map((cell) => cell.textContent).join("\n") === expected;
  return until(page, are, names.map((name) => SENTENCES[name]).join("\n"));
}

test("each kind of event is told, and found by its kind and its text", async (t) => {
  const { page } = await withEvents(t);
  await visit(page, "events");
  await untilListed(page, ...Object.keys(SENTENCES));
  const kinds = await page.locator("tr.event td:nth-child(2)").allTextContents();
  assert.deepEqual(kinds, ["missed", "port changed", "role changed", "link up", "link down", "host left", "host moved", "host joined"]);
  const kind = page.getByLabel("Kind of events");
  for (const [name, left] of [["host", ["left", "moved", "joined"]], ["link", ["up", "down"]], ["role", ["role"]], ["missed", ["missed"]], ["port", ["port"]]]) {
    await kind.selectOption(name);
    await untilListed(page, ...left);
  }
  await kind.selectOption("program");
  await page.getByText("No event is like this.").waitFor();
  await kind.selectOption("");
  await page.getByLabel("Filter events by text").fill("RIGHT:");
  await untilListed(page, "up", "down", "moved");
  await kind.selectOption("host");
  await untilListed(page, "moved");
});

test("events are those of the link, the host or the switch that is picked", async (t) => {
  const { page } = await withEvents(t);
  const pick = async (list, name) => {
    await visit(page, "network");
    await items(page, list).filter({ hasText: name }).first().click();
    await visit(page, "events");
  };
  await pick("Links", "right:2 – third:1");
  await untilListed(page, "up");
  await page.getByText("of link right:2 – third:1").waitFor();
  await pick("Hosts", "10.0.0.1");
  await untilListed(page, "moved", "joined");
  await page.getByText("of host 10.0.0.1").waitFor();
  await pick("Switches", "third");
  await untilListed(page, "role", "up", "left");
  await page.getByRole("button", { name: "Show all" }).click();
  await untilListed(page, ...Object.keys(SENTENCES));
});

test("of many events the newest are listed, the others counted, and found by the filter", async (t) => {
  const { fake, page } = await withEvents(t);
  for (let number = 1; number <= 500; number += 1) fake.tell("refused", { dpid: dpid(1), code: `CODE_${number}`, count: 1 });
  await visit(page, "events");
  await page.getByText("208 older events: filter to find them").waitFor();
  assert.equal(await page.locator("tr.event").count(), 300);
  await page.getByLabel("Filter events by text").fill("found at left");
  await untilListed(page, "joined");
  // Of more than two thousand events, the oldest are dropped.
  for (let number = 501; number <= 2_500; number += 1) fake.tell("refused", { dpid: dpid(1), code: `CODE_${number}`, count: 1 });
  await page.getByLabel("Filter events by text").fill("");
  await until(page, () => document.querySelector("tr.event td:last-child").textContent.includes("CODE_2500,"));
  await page.getByText("1,700 older events: filter to find them").waitFor();
});
