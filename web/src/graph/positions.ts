// The switches' positions, stored by the browser, so that a network looks the same the next time.

import type { Point } from "./layout";

const KEY = "urtica.positions";

/** The number of stored switches: those seen last. */
const KEPT = 5_000;

export class Positions {
  private points = new Map<string, Point>(read());

  get known(): ReadonlyMap<string, Point> {
    return this.points;
  }

  set(points: Iterable<[string, Point]>): void {
    let isOther = false;
    for (const [node, point] of points) {
      const before = this.points.get(node);
      isOther ||= before?.x !== point.x || before.y !== point.y;
      this.points.delete(node);
      this.points.set(node, point);
    }
    if (!isOther) return;
    this.points = new Map([...this.points].slice(-KEPT));
    try {
      localStorage.setItem(KEY, JSON.stringify([...this.points]));
    } catch {
      // Without storage, positions last as long as the page.
    }
  }

  forget(): void {
    this.points.clear();
    try {
      localStorage.removeItem(KEY);
    } catch {
      // As above.
    }
  }
}

function read(): [string, Point][] {
  try {
    const told: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(told) ? told.filter(isPosition).slice(-KEPT) : [];
  } catch {
    return [];
  }
}

function isPosition(told: unknown): told is [string, Point] {
  if (!Array.isArray(told) || typeof told[0] !== "string") return false;
  const point = told[1] as Partial<Point> | null;
  return Number.isFinite(point?.x) && Number.isFinite(point?.y);
}
