// Colours with a meaning, which colour-blind users must be able to distinguish.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { small } from "./fake.mjs";
import { browse, isLive, open, until } from "./lab.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser.close());

/** The colours of links: by their load, for lost links, and for paths. */
const NAMES = ["--load-0", "--load-1", "--load-2", "--load-3", "--load-4", "--bad", "--path"];

/** A difference of 2.3 is just visible between adjacent colours; lines that lie apart need several times that. */
const LEAST = 12;

/** The red, green and blue light seen by people who lack one kind of cones (Machado, Oliveira and Fernandes, 2009). */
const SIGHTS = {
  "full colour vision": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** Converts #rrggbb to red, green and blue light, from 0 to 1 (sRGB). */
function light(hex) {
  const values = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  return values.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
}

function seen(sight, colour) {
  const sums = sight.map((row) => row.reduce((sum, factor, place) => sum + factor * colour[place], 0));
  return sums.map((value) => Math.min(1, Math.max(0, value)));
}

/** Returns the colour in CIE's L*a*b*, under daylight (D65). */
function lab([red, green, blue]) {
  const root = (value) => (value > 216 / 24389 ? Math.cbrt(value) : (24389 / 27 / 116) * value + 16 / 116);
  const x = root((0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047);
  const y = root(0.2126729 * red + 0.7151522 * green + 0.072175 * blue);
  const z = root((0.0193339 * red + 0.119192 * green + 0.9503041 * blue) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** Returns CIE 1976's difference of two colours. */
function difference(a, b, sight) {
  const [first, second] = [a, b].map((hex) => lab(seen(sight, light(hex))));
  return Math.hypot(...first.map((value, place) => value - second[place]));
}

test("the difference of colours is CIE's", () => {
  const full = SIGHTS["full colour vision"];
  assert.equal(Math.round(difference("#ffffff", "#000000", full)), 100);
  // Without one kind of cones, red and green of equal lightness look nearly the same.
  const [all, some] = [full, SIGHTS.deuteranopia].map((sight) => difference("#d55e00", "#9a8a00", sight));
  assert.ok(some < all / 2, `${some}, ${all}`);
});

test("colours of loads, of what is gone and of a path differ for all kinds of sight, dark and light", async (t) => {
  const page = await open(browser, t, await small().start(t));
  await until(page, isLive);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const read = (names) => names.map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    const colours = await page.evaluate(read, NAMES);
    for (const [name, sight] of Object.entries(SIGHTS)) {
      for (const [place, colour] of colours.entries()) {
        for (const [other, another] of colours.slice(0, place).entries()) {
          const found = difference(colour, another, sight);
          assert.ok(found >= LEAST, `${colorScheme}, ${name}: ${NAMES[other]} and ${NAMES[place]} differ by ${found.toFixed(1)}`);
        }
      }
    }
  }
});
