// Positions for the switches of a network: equal for equal networks, and stable when the network changes.
//
// Distances in hops to a few pivots, projected onto the plane (pivot MDS: Brandes and Pich, 2006), give the shape; some rounds
// of springs then separate overlapping nodes. Both take well under a second for a thousand switches. New switches are placed
// beside their neighbours, and no other switch moves.

export interface Point {
  x: number;
  y: number;
}

/** The length of a link. */
const LENGTH = 120;
const PIVOTS = 32;

/** Returns positions of `nodes`, some of which may be known. */
export function place(
  nodes: readonly string[],
  edges: readonly (readonly [string, string])[],
  known: ReadonlyMap<string, Point>,
): Map<string, Point> {
  const positions = new Map<string, Point>();
  for (const node of nodes) {
    const point = known.get(node);
    if (point !== undefined) positions.set(node, point);
  }
  const neighbours = neighboursOf(nodes, edges);
  // With many new nodes, place all of them again.
  if (positions.size < nodes.length / 2) return placeAll(nodes, neighbours);
  placeBeside(nodes, neighbours, positions);
  return positions;
}

function neighboursOf(nodes: readonly string[], edges: readonly (readonly [string, string])[]): Map<string, string[]> {
  const neighbours = new Map<string, string[]>(nodes.map((node) => [node, []]));
  for (const [a, b] of edges) {
    if (a === b || !neighbours.has(a) || !neighbours.has(b)) continue;
    neighbours.get(a)?.push(b);
    neighbours.get(b)?.push(a);
  }
  return neighbours;
}

/** Places nodes without a position, first those with a placed neighbour. */
function placeBeside(nodes: readonly string[], neighbours: Map<string, string[]>, positions: Map<string, Point>): void {
  let left = nodes.filter((node) => !positions.has(node));
  while (left.length > 0) {
    const ready = left.filter((node) => neighbours.get(node)?.some((other) => positions.has(other)));
    for (const node of ready.length > 0 ? ready : left) {
      const beside = (neighbours.get(node) ?? []).map((other) => positions.get(other));
      const near = mean(beside.filter((point) => point !== undefined)) ?? below(positions);
      const angle = 2 * Math.PI * drawn(node);
      positions.set(node, { x: near.x + LENGTH * Math.cos(angle), y: near.y + LENGTH * Math.sin(angle) });
    }
    left = left.filter((node) => !positions.has(node));
  }
}

/** Returns a number from 0 to 1 that depends only on a name. */
export function drawn(name: string): number {
  let hash = 2166136261;
  for (let place = 0; place < name.length; place += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(place), 16777619);
  }
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
}

/** Returns the mean of points; `null` if there are none. */
export function mean(points: readonly Point[]): Point | null {
  if (points.length === 0) return null;
  const sum = points.reduce((sum, { x, y }) => ({ x: sum.x + x, y: sum.y + y }), { x: 0, y: 0 });
  return { x: sum.x / points.length, y: sum.y / points.length };
}

function below(positions: ReadonlyMap<string, Point>): Point {
  const points = [...positions.values()];
  if (points.length === 0) return { x: 0, y: 0 };
  return { x: Math.min(...points.map(({ x }) => x)), y: Math.max(...points.map(({ y }) => y)) + 2 * LENGTH };
}

/** Places each connected part separately, and the parts in rows. */
function placeAll(nodes: readonly string[], neighbours: Map<string, string[]>): Map<string, Point> {
  const parts = partsOf(nodes, neighbours).map((part) => placePart(part, neighbours));
  parts.sort((a, b) => b.length - a.length);
  const positions = new Map<string, Point>();
  const widest = Math.max(...parts.map(widthOf), LENGTH);
  let [x, y, height] = [0, 0, 0];
  for (const part of parts) {
    const width = widthOf(part);
    if (x > 0 && x + width > widest + LENGTH) [x, y, height] = [0, y + height + LENGTH, 0];
    part.forEach(([node, point]) => positions.set(node, { x: point.x + x, y: point.y + y }));
    x += width + LENGTH;
    height = Math.max(height, ...part.map(([, point]) => point.y));
  }
  return positions;
}

type Part = [string, Point][];

function widthOf(part: Part): number {
  return Math.max(0, ...part.map(([, point]) => point.x));
}

function partsOf(nodes: readonly string[], neighbours: Map<string, string[]>): string[][] {
  const seen = new Set<string>();
  const parts: string[][] = [];
  for (const node of nodes) {
    if (seen.has(node)) continue;
    const part = [node];
    seen.add(node);
    for (const reached of part) {
      for (const other of neighbours.get(reached) ?? []) {
        if (!seen.has(other)) part.push(other);
        seen.add(other);
      }
    }
    parts.push(part);
  }
  return parts;
}

/** Places a connected part, starting at (0, 0). */
function placePart(part: readonly string[], neighbours: Map<string, string[]>): Part {
  const places = new Map(part.map((node, place) => [node, place]));
  const adjacent = part.map((node) => {
    const others = (neighbours.get(node) ?? []).map((other) => places.get(other));
    return others.filter((place) => place !== undefined);
  });
  const points = scaledToLinks(shape(adjacent), adjacent);
  part.forEach((node, place) => {
    const point = points[place];
    // Nodes with equal distances must not have equal positions.
    if (point !== undefined) {
      point.x += (drawn(node) - 0.5) * LENGTH * 0.2;
      point.y += (drawn(`${node}y`) - 0.5) * LENGTH * 0.2;
    }
  });
  spread(points, adjacent);
  const [left, top] = [Math.min(...points.map(({ x }) => x)), Math.min(...points.map(({ y }) => y))];
  return part.map((node, place) => {
    const point = points[place] ?? { x: left, y: top };
    return [node, { x: Math.round(point.x - left), y: Math.round(point.y - top) }];
  });
}

/** Computes two coordinates for each node by pivot MDS. */
function shape(adjacent: readonly number[][]): Point[] {
  const columns = distancesToPivots(adjacent).map((distances) => distances.map((distance) => distance ** 2));
  centre(columns);
  const first = axis(columns, null);
  const second = axis(columns, first);
  return adjacent.map((_, node) => ({ x: project(columns, first, node), y: project(columns, second, node) }));
}

function distancesToPivots(adjacent: readonly number[][]): number[][] {
  const columns: number[][] = [];
  const nearest = adjacent.map(() => Infinity);
  let pivot = 0;
  while (columns.length < Math.min(PIVOTS, adjacent.length)) {
    const distances = hops(adjacent, pivot);
    columns.push(distances);
    distances.forEach((distance, node) => (nearest[node] = Math.min(nearest[node] ?? 0, distance)));
    pivot = nearest.indexOf(nearest.reduce((most, distance) => Math.max(most, distance), 0));
  }
  return columns;
}

function hops(adjacent: readonly number[][], from: number): number[] {
  const distances = adjacent.map(() => Infinity);
  distances[from] = 0;
  const reached = [from];
  for (const node of reached) {
    for (const other of adjacent[node] ?? []) {
      if (distances[other] !== Infinity) continue;
      distances[other] = (distances[node] ?? 0) + 1;
      reached.push(other);
    }
  }
  return distances;
}

/** Converts distances to similarities, and makes the sum of each row and column 0. */
function centre(columns: number[][]): void {
  const rows = columns[0]?.length ?? 0;
  const rowMeans = Array.from({ length: rows }, (_, row) => average(columns.map((column) => column[row] ?? 0)));
  const total = average(rowMeans);
  for (const column of columns) {
    const columnMean = average(column);
    column.forEach((value, row) => (column[row] = -0.5 * (value - columnMean - (rowMeans[row] ?? 0) + total)));
  }
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function project(columns: readonly number[][], axis: readonly number[], node: number): number {
  return columns.reduce((sum, column, place) => sum + (column[node] ?? 0) * (axis[place] ?? 0), 0);
}

/** Returns the direction of the columns' largest variance, perpendicular to `other`, if given. */
function axis(columns: readonly number[][], other: readonly number[] | null): number[] {
  const nodes = columns[0]?.length ?? 0;
  let direction = columns.map((_, place) => drawn(`axis ${place}`) - 0.5);
  for (let round = 0; round < 60; round += 1) {
    direction = normal(direction, other);
    const projected = Array.from({ length: nodes }, (_, node) => project(columns, direction, node));
    direction = columns.map((column) => column.reduce((sum, value, node) => sum + value * (projected[node] ?? 0), 0));
  }
  return normal(direction, other);
}

function normal(direction: readonly number[], other: readonly number[] | null): number[] {
  const along = other === null ? 0 : direction.reduce((sum, value, place) => sum + value * (other[place] ?? 0), 0);
  const upright = direction.map((value, place) => value - along * (other?.[place] ?? 0));
  const length = Math.hypot(...upright);
  return upright.map((value) => (length > 1e-9 ? value / length : 0));
}

/** Scales points so that links have the right length on average. */
function scaledToLinks(points: Point[], adjacent: readonly number[][]): Point[] {
  let [sum, count] = [0, 0];
  adjacent.forEach((others, node) => {
    for (const other of others) {
      sum += distance(points[node], points[other]);
      count += 1;
    }
  });
  const scale = sum > 1e-6 ? (LENGTH * count) / sum : 1;
  return points.map(({ x, y }) => ({ x: x * scale, y: y * scale }));
}

function distance(a: Point | undefined, b: Point | undefined): number {
  return a === undefined || b === undefined ? 0 : Math.hypot(a.x - b.x, a.y - b.y);
}

/** Applies springs along links, and repulsion between close nodes. */
function spread(points: Point[], adjacent: readonly number[][]): void {
  const rounds = points.length > 400 ? 40 : 200;
  for (let round = 0; round < rounds; round += 1) {
    const step = LENGTH * 0.25 * (1 - round / rounds);
    const forces = points.map(() => ({ x: 0, y: 0 }));
    pushAway(points, forces);
    pull(points, adjacent, forces);
    points.forEach((point, node) => {
      const force = forces[node] ?? { x: 0, y: 0 };
      const strength = Math.hypot(force.x, force.y);
      if (strength === 0) return;
      const by = Math.min(step, strength) / strength;
      point.x += force.x * by;
      point.y += force.y * by;
    });
  }
}

/** The range of nodes' repulsion. */
const REACH = 2 * LENGTH;

function pushAway(points: readonly Point[], forces: Point[]): void {
  const cells = new Map<string, number[]>();
  const cell = (value: number) => Math.floor(value / REACH);
  points.forEach(({ x, y }, node) => {
    const key = `${cell(x)},${cell(y)}`;
    const inside = cells.get(key);
    if (inside === undefined) cells.set(key, [node]);
    else inside.push(node);
  });
  points.forEach((point, node) => {
    const force = forces[node];
    if (force === undefined) return;
    for (let row = -1; row <= 1; row += 1) {
      for (let column = -1; column <= 1; column += 1) {
        for (const other of cells.get(`${cell(point.x) + column},${cell(point.y) + row}`) ?? []) {
          if (other !== node) push(point, points[other], force);
        }
      }
    }
  });
}

function push(point: Point, other: Point | undefined, force: Point): void {
  if (other === undefined) return;
  const apart = Math.max(1, distance(point, other));
  if (apart >= REACH) return;
  const strength = (LENGTH * LENGTH) / apart / 2;
  force.x += ((point.x - other.x) / apart) * strength;
  force.y += ((point.y - other.y) / apart) * strength;
}

function pull(points: readonly Point[], adjacent: readonly number[][], forces: Point[]): void {
  adjacent.forEach((others, node) => {
    const [point, force] = [points[node], forces[node]];
    if (point === undefined || force === undefined) return;
    for (const other of others) {
      const end = points[other];
      if (end === undefined) continue;
      const strength = distance(point, end) / LENGTH;
      force.x += ((end.x - point.x) * strength) / 2;
      force.y += ((end.y - point.y) * strength) / 2;
    }
  });
}

/** Returns the positions of a switch's hosts: on the side away from its neighbours, or all around for many hosts. */
export function around(centre: Point, others: readonly Point[], count: number): Point[] {
  const middle = mean(others) ?? { x: centre.x, y: centre.y - 1 };
  const outwards = Math.atan2(centre.y - middle.y || 1e-3, centre.x - middle.x);
  const room = Math.min(2 * Math.PI, (Math.PI / 5) * Math.max(1, count));
  return Array.from({ length: count }, (_, place) => {
    const angle = outwards + room * ((place + 0.5) / count - 0.5);
    const radius = 58 + 26 * (count > 10 ? place % 2 : 0);
    return { x: centre.x + radius * Math.cos(angle), y: centre.y + radius * Math.sin(angle) };
  });
}
