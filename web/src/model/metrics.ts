// Parses the samples in /metrics that the page shows.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** Yields the samples of these metrics, whose names start with `urtica_`, from Prometheus's text format. */
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

/** A histogram's counts by upper bound, in order. */
export type Buckets = Map<number, number>;

/** Returns the upper bound of this share of the values counted between two readings; `null` if there are none. */
export function quantile(before: Buckets | undefined, now: Buckets, share: number): number | null {
  const grown = [...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)] as const);
  grown.sort(([a], [b]) => a - b);
  const total = grown.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const reached = grown.findIndex(([, count]) => count >= share * total);
  const [bound = Infinity] = grown[reached] ?? [];
  // Beyond the last bound, only the bound itself is known.
  return Number.isFinite(bound) ? bound : (grown.at(-2)?.[0] ?? null);
}
