// Colours and widths of links by load: Okabe and Ito's colours, which colour-blind people can distinguish; widths show it, too.

export interface Level {
  /** The upper limit, as a share of a link's capacity. */
  below: number;
  name: string;
  /** The name of a colour in style.css. */
  colour: string;
  width: number;
}

export const LEVELS: readonly Level[] = [
  { below: 0.01, name: "idle", colour: "--load-0", width: 1.5 },
  { below: 0.25, name: "below 25 %", colour: "--load-1", width: 2.5 },
  { below: 0.5, name: "below 50 %", colour: "--load-2", width: 4 },
  { below: 0.8, name: "below 80 %", colour: "--load-3", width: 6 },
  { below: Infinity, name: "80 % and more", colour: "--load-4", width: 8.5 },
];

/** Returns the level of a load; for a link of unknown capacity, 1 Gbit/s is assumed. */
export function levelOf(load: { bps: number; share: number | null } | null): number {
  if (load === null) return 0;
  const share = load.share ?? load.bps / 1e9;
  return LEVELS.findIndex((level) => share < level.below);
}
