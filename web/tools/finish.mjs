// Runs after Vite: adds the licences of the page's dependencies, compresses each file, and fails if the page has grown too large.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const DIST = new URL("../dist/", import.meta.url);
const MODULES = new URL("../node_modules/", import.meta.url);
const CARRIED = Object.keys(JSON.parse(readFileSync(new URL("../package.json", import.meta.url))).dependencies);
const MOST_BYTES = 400 * 1024;

const licences = CARRIED.map((name) => `${name}\n\n${readFileSync(new URL(`${name}/LICENSE`, MODULES), "utf8")}`);
writeFileSync(new URL("assets/licences.txt", DIST), licences.join("\n----\n\n"));

const files = ["index.html", ...readdirSync(new URL("assets/", DIST)).map((name) => `assets/${name}`)];
let total = 0;
for (const file of files.filter((file) => !file.endsWith(".gz"))) {
  const compressed = gzipSync(readFileSync(new URL(file, DIST)), { level: 9 });
  writeFileSync(new URL(`${file}.gz`, DIST), compressed);
  total += compressed.length;
}
console.log(`the page has ${(total / 1024).toFixed(0)} KB, compressed`);
if (total > MOST_BYTES) {
  console.error(`expected at most ${MOST_BYTES / 1024} KB`);
  process.exit(1);
}
