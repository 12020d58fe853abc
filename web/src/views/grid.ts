// A table whose cells show changes.

import { Rows, el, setText } from "../dom";

export interface GridRow {
  key: string;
  cells: string[];
  isBad?: boolean;
}

/** A table with a heading. Changed cells are marked for a moment. */
export class Grid {
  readonly element: HTMLElement;
  private readonly title: HTMLElement;
  private readonly rows: Rows<GridRow>;

  constructor(
    private readonly name: string,
    columns: readonly string[],
  ) {
    const body = el("tbody");
    const heads = columns.map((column) => el("th", { scope: "col" }, column));
    this.title = el("h3", {}, name);
    this.rows = new Rows(body, (row: GridRow) => row.key, gridRow);
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
    const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);
    this.element = el("section", { class: `grid ${name.toLowerCase()}` }, this.title, scroll);
  }

  show(rows: GridRow[]): void {
    setText(this.title, `${this.name} (${rows.length})`);
    this.element.hidden = rows.length === 0;
    this.rows.show(rows);
  }
}

function gridRow(first: GridRow) {
  const cells = first.cells.map(() => el("td", {}, el("bdi", {})));
  const element = el("tr", {}, ...cells);
  let isNew = true;
  return {
    element,
    show(row: GridRow) {
      element.classList.toggle("bad", row.isBad === true);
      row.cells.forEach((text, place) => {
        const cell = cells[place];
        const inner = cell?.firstElementChild;
        if (cell === undefined || inner === null || inner === undefined) return;
        const isOther = inner.textContent !== text;
        if (isOther) inner.textContent = text;
        cell.classList.toggle("changed", isOther && !isNew);
      });
      isNew = false;
    },
  };
}
