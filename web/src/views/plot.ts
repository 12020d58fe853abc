// A plot over time, by uPlot.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { el } from "../dom";

export interface Line {
  name: string;
  /** The name of a colour in style.css. */
  colour: string;
  dash?: number[];
}

export class Plot {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private readonly holder = el("div", { class: "holder" });
  private readonly now = el("span", { class: "about" });
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly observer = new ResizeObserver(() => this.resize());
  private readonly repaint = () => this.drop();

  constructor(
    title: string,
    private readonly lines: readonly Line[],
    private readonly format: (value: number) => string,
  ) {
    this.element = el("section", { class: "plot" }, el("h3", {}, title, " ", this.now), this.holder);
    this.observer.observe(this.holder);
    this.scheme.addEventListener("change", this.repaint);
  }

  /** Shows values at times, in seconds since 1970; unknown values are `null`. */
  show(times: number[], values: (number | null)[][]): void {
    const data: uPlot.AlignedData = [times, ...values];
    this.now.textContent = this.lines
      .map(({ name }, place) => {
        const value = values[place]?.at(-1);
        return `${name} ${value === null || value === undefined ? "–" : this.format(value)}`;
      })
      .join(" · ");
    if (this.plot === null) this.plot = this.draw(data);
    else this.plot.setData(data);
  }

  close(): void {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
    this.drop();
  }

  private drop(): void {
    this.plot?.destroy();
    this.plot = null;
  }

  private resize(): void {
    this.plot?.setSize({ width: this.holder.clientWidth, height: this.holder.clientHeight });
  }

  private draw(data: uPlot.AlignedData): uPlot {
    const computed = getComputedStyle(this.holder);
    const colour = (name: string) => computed.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    const values = (_: uPlot, ticks: number[]) => ticks.map((tick) => this.format(tick));
    const options: uPlot.Options = {
      width: this.holder.clientWidth,
      height: this.holder.clientHeight,
      cursor: { y: false },
      legend: { show: false },
      scales: { y: { range: (_, __, most) => [0, Math.max(most, 1e-3) * 1.1] } },
      axes: [axis, { ...axis, size: 80, values }],
      series: [
        {},
        ...this.lines.map((line) => ({
          label: line.name,
          stroke: colour(line.colour),
          width: 2,
          points: { show: false },
          ...(line.dash === undefined ? {} : { dash: line.dash }),
        })),
      ],
    };
    return new uPlot(options, data, this.holder);
  }
}
