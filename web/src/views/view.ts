// What views share.

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

/** A view: its element, how it shows what is known now, and what it lets go of at its end. */
export interface View {
  element: HTMLElement;
  /** Called once the element is in the page, and whenever something has changed. */
  update(): void;
  close(): void;
}
