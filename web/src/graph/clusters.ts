// Large networks in parts: nearby switches are drawn as one node, until the user opens them.
//
// In each connected part, some switches that are far from each other become centres, and every switch belongs to the
// nearest centre, in hops. Like positions, clusters are stable: a lost link changes no cluster, and a new switch joins the
// cluster of most of its neighbours.

/** Smaller networks are drawn without clusters. */
export const CLUSTERED_FROM = 200;

type Neighbours = ReadonlyMap<string, ReadonlySet<string>>;

export class Clusters {
  /** The centre of each switch's cluster. */
  private centres = new Map<string, string>();
  private opened = new Set<string>();

  /** Assigns every switch to a cluster. */
  update(nodes: readonly string[], edges: readonly (readonly [string, string])[]): void {
    const kept = nodes.filter((node) => this.centres.has(node));
    const isTooFine = new Set(this.centres.values()).size > 3 * clustersFor(nodes.length);
    const isKnown = kept.length === nodes.length && kept.length === this.centres.size;
    if (isKnown && !isTooFine) return;
    const neighbours = neighboursOf(nodes, edges);
    // With many new switches the network has changed; with too many clusters, they were made before its links were known.
    if (isTooFine || kept.length < nodes.length / 2) this.centres = assignAll(nodes, neighbours);
    else this.centres = joined(nodes, neighbours, this.centres);
  }

  /** Returns the cluster that contains a switch; `null` for a switch that is drawn individually. */
  of(node: string): string | null {
    const centre = this.centres.get(node);
    return centre === undefined || this.opened.has(centre) ? null : centre;
  }

  /** Opens the cluster of a switch, so that its switches are drawn; returns whether it was closed. */
  open(node: string): boolean {
    const centre = this.centres.get(node);
    if (centre === undefined || this.opened.has(centre)) return false;
    this.opened.add(centre);
    return true;
  }

  closeAll(): void {
    this.opened.clear();
  }

  forget(): void {
    this.centres.clear();
    this.opened.clear();
  }
}

function neighboursOf(nodes: readonly string[], edges: readonly (readonly [string, string])[]): Neighbours {
  const neighbours = new Map<string, Set<string>>(nodes.map((node) => [node, new Set()]));
  for (const [a, b] of edges) {
    if (a === b || !neighbours.has(a) || !neighbours.has(b)) continue;
    neighbours.get(a)?.add(b);
    neighbours.get(b)?.add(a);
  }
  return neighbours;
}

/** Returns a number of clusters that is about the number of switches in each. */
function clustersFor(switches: number): number {
  return Math.ceil(Math.sqrt(switches));
}

function assignAll(nodes: readonly string[], neighbours: Neighbours): Map<string, string> {
  const centres = new Map<string, string>();
  const hops = new Map<string, number>();
  for (let count = 0; count < clustersFor(nodes.length); count += 1) {
    const farthest = farthestOf(nodes, hops);
    if (farthest === null) break;
    spreadFrom(farthest, neighbours, hops, centres);
  }
  // If there are more connected parts than clusters, each part is a cluster.
  for (const node of nodes) {
    if (!hops.has(node)) spreadFrom(node, neighbours, hops, centres);
  }
  return centres;
}

/** Returns the first of the nodes farthest from all centres, in hops; nodes that no centre reaches come first. */
function farthestOf(nodes: readonly string[], hops: ReadonlyMap<string, number>): string | null {
  let [farthest, most] = [null as string | null, 0];
  for (const node of nodes) {
    const distance = hops.get(node) ?? Infinity;
    if (distance > most) [farthest, most] = [node, distance];
  }
  return farthest;
}

/** Makes a switch a centre: switches that are nearer to it than to their own centre join it. */
function spreadFrom(
  centre: string,
  neighbours: Neighbours,
  hops: Map<string, number>,
  centres: Map<string, string>,
): void {
  hops.set(centre, 0);
  centres.set(centre, centre);
  const reached = [centre];
  for (const node of reached) {
    const next = (hops.get(node) ?? 0) + 1;
    for (const other of neighbours.get(node) ?? []) {
      if (next >= (hops.get(other) ?? Infinity)) continue;
      hops.set(other, next);
      centres.set(other, centre);
      reached.push(other);
    }
  }
}

/** Keeps the clusters of the remaining switches, and lets new switches join them. */
function joined(nodes: readonly string[], neighbours: Neighbours, before: ReadonlyMap<string, string>): Map<string, string> {
  const centres = new Map<string, string>();
  for (const node of nodes) {
    const centre = before.get(node);
    if (centre !== undefined) centres.set(node, centre);
  }
  let left = nodes.filter((node) => !centres.has(node));
  while (left.length > 0) {
    const found = left.map((node) => [node, mostFrequent(neighbours.get(node) ?? new Set(), centres)] as const);
    const [first] = left;
    // If no remaining switch has a neighbour in a cluster, one starts a new cluster.
    const isAlone = found.every(([, centre]) => centre === null);
    for (const [node, centre] of found) {
      if (centre !== null) centres.set(node, centre);
    }
    if (isAlone && first !== undefined) centres.set(first, first);
    left = left.filter((node) => !centres.has(node));
  }
  return centres;
}

function mostFrequent(neighbours: ReadonlySet<string>, centres: ReadonlyMap<string, string>): string | null {
  const counts = new Map<string, number>();
  for (const node of neighbours) {
    const centre = centres.get(node);
    if (centre !== undefined) counts.set(centre, (counts.get(centre) ?? 0) + 1);
  }
  const [first] = [...counts].sort(([a, most], [b, least]) => least - most || (a < b ? -1 : 1));
  return first?.[0] ?? null;
}
