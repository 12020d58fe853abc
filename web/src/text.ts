// Formatting of names chosen by others, and of numbers.

/** The maximum length of a shown name. */
const SHOWN = 64;

/** What controls the direction of text, or has no form. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns the start of a name, without invisible characters. */
export function clipped(name: string, length = SHOWN): string {
  const seen = [...name.slice(0, 4 * length).replace(UNSEEN, "\ufffd")];
  const isWhole = seen.length <= length && name.length <= 4 * length;
  return isWhole ? seen.join("") : `${seen.slice(0, length - 1).join("")}…`;
}

/** Returns a name for a canvas, isolated so that right-to-left text does not affect its surroundings. */
export function isolated(name: string, length: number): string {
  return `\u2068${clipped(name, length)}\u2069`;
}

/** Creates an element with a name chosen by others. */
export function nameOf(name: string): HTMLElement {
  const element = document.createElement("bdi");
  element.className = "name";
  setName(element, name);
  return element;
}

/** Shows another name in such an element. */
export function setName(element: HTMLElement, name: string): void {
  const text = clipped(name);
  if (element.textContent === text) return;
  element.textContent = text;
  if (text === name) element.removeAttribute("title");
  else element.title = clipped(name, 4 * SHOWN);
}

/** Formats a datapath id without leading zeros. */
export function shortId(id: string): string {
  return id.replace(/^0+(?=.)/, "");
}

/** Formats a number with a prefix: 12.3 k. */
export function scaled(value: number, unit: string): string {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let place = 0;
  while (Math.abs(value) >= 1000 && place < prefixes.length - 1) {
    value /= 1000;
    place += 1;
  }
  const digits = place === 0 || Math.abs(value) >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${prefixes[place] ?? ""}${unit}`;
}

/** Formats a count with thousands separators. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-GB");
}

/** Formats a count and its noun. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Formats a share: 12 %. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** Formats an elapsed time. */
export function passed(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Formats a time of day. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}
