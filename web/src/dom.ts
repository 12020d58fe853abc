// Elements without a framework. Data becomes text, never markup.

export type Child = Node | string | null;
type Attributes = Record<string, string | boolean | null>;

/** Creates an element with attributes (`true` is an empty one, `null` and `false` are omitted) and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => child !== null));
  return element;
}

/** Creates a button with an action. */
export function button(text: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const element = el("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", act);
  return element;
}

/** Sets the options of a field, each a value with its text, and keeps the selected one. */
export function offer(select: HTMLSelectElement, values: readonly (readonly [string, string])[]): void {
  const offered = [...select.options].map((option) => option.value).join();
  if (offered === values.map(([value]) => value).join()) return;
  const chosen = select.value;
  select.replaceChildren(...values.map(([value, text]) => el("option", { value }, text)));
  if (values.some(([value]) => value === chosen)) select.value = chosen;
}

/** Sets an element's text, if it differs. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or removes an attribute, if it differs. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A row of a list: its element, and a function that shows an item in it. */
export interface Row<T> {
  element: HTMLElement;
  show(item: T): void;
}

/** A list whose elements are kept as long as their items, so that focus, selection and scroll position are kept, too. */
export class Rows<T> {
  private rows = new Map<string, Row<T>>();

  constructor(
    private readonly parent: Element,
    private readonly keyOf: (item: T) => string,
    private readonly create: (item: T) => Row<T>,
  ) {}

  show(items: readonly T[]): void {
    const rows = new Map<string, Row<T>>();
    let next = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      const row = this.rows.get(key) ?? this.create(item);
      this.rows.delete(key);
      rows.set(key, row);
      row.show(item);
      if (row.element === next) next = next.nextElementSibling;
      else this.parent.insertBefore(row.element, next);
    }
    for (const row of this.rows.values()) row.element.remove();
    this.rows = rows;
  }
}

/** The maximum share of time for showing changes. */
const BUSY_SHARE = 0.25;

/** Returns a function that calls `act` soon, once for all calls until then, and limits its share of the time. */
export function throttled(act: () => void, intervalMs = 100): () => void {
  let isWanted = false;
  let nextMs = 0;
  return () => {
    if (isWanted) return;
    isWanted = true;
    const wait = Math.max(0, nextMs - performance.now());
    setTimeout(() => {
      isWanted = false;
      const began = performance.now();
      act();
      const took = performance.now() - began;
      nextMs = began + Math.max(intervalMs, took / BUSY_SHARE);
    }, wait);
  };
}
