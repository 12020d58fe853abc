// Names of others, and numbers, as they are shown.

/** How much of a name is shown. */
const SHOWN = 64;

/** What controls the direction of text, or has no form. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The beginning of a name, without characters that nobody sees. */
export function clipped(name: string, length = SHOWN): string {
  const seen = [...name.slice(0, 4 * length).replace(UNSEEN, "\ufffd")];
  const isWhole = seen.length <= length && name.length <= 4 * length;
  return isWhole ? seen.join("") : `${seen.slice(0, length - 1).join("")}…`;
}

/** A name for a canvas: isolated, so that a right-to-left one does not turn its surroundings. */
export function isolated(name: string, length: number): string {
  return `\u2068${clipped(name, length)}\u2069`;
}

/** An element with somebody else's name. */
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

/** A datapath id without its leading zeros. */
export function shortId(id: string): string {
  return id.replace(/^0+(?=.)/, "");
}

/** A number with a prefix: 12.3 k. */
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

/** A count with separators of thousands. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-GB");
}

/** A count and its noun. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A share: 12 %. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** A time that has passed. */
export function passed(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A time of day. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}
