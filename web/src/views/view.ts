// Common parts of views.

import type { Live } from "../model/live";
import type { Rates } from "../model/rates";
import type { Selection } from "../model/selection";

export interface Context {
  live: Live;
  selection: Selection;
  rates: Rates;
  /** Shows another view: the part of the address after #/. */
  go(address: string): void;
}

/** A view: its element, a function that updates it, and one that releases its resources. */
export interface View {
  element: HTMLElement;
  /** Called once the element is in the page, and after every change. */
  update(): void;
  close(): void;
}
