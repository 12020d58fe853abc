// What /metrics has, as far as the page shows it.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The samples of metrics with these names, which begin with `urtica_`, as Prometheus' text format has them. */
export function* samples(text: string, wanted: ReadonlySet<string>): Generator<Sample> {
  for (const line of text.split("\n")) {
    const [, name = "", labels = "", value = ""] = /^urtica_(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (wanted.has(name)) yield { name, labels: parseLabels(labels), value: Number(value) };
  }
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
  }
  return labels;
}

/** A histogram's counts by upper bounds, which are in order. */
export type Buckets = Map<number, number>;

/** The bound below which this share of what was counted between two readings is; `null` where nothing was. */
export function quantile(before: Buckets | undefined, now: Buckets, share: number): number | null {
  const grown = [...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)] as const);
  grown.sort(([a], [b]) => a - b);
  const total = grown.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const reached = grown.findIndex(([, count]) => count >= share * total);
  const [bound = Infinity] = grown[reached] ?? [];
  // Beyond the last bound, only that is known.
  return Number.isFinite(bound) ? bound : (grown.at(-2)?.[0] ?? null);
}
