// The picture's style, in the colours of style.css.

import type { NodeSingular, StylesheetJson } from "cytoscape";
import { LEVELS } from "./loads";

/** Returns the style in the current colours, which change with the system's setting. */
export function styleOf(container: Element): StylesheetJson {
  const computed = getComputedStyle(container);
  const colour = (name: string) => computed.getPropertyValue(name).trim();
  const font = computed.fontFamily;
  return [
    {
      selector: "node",
      style: {
        label: "data(label)",
        color: colour("--text"),
        "font-family": font,
        "font-size": 13,
        "border-color": colour("--line"),
        "background-color": colour("--panel"),
        "text-max-width": "160px",
        "min-zoomed-font-size": 7,
      },
    },
    {
      selector: "node.switch",
      style: {
        shape: "round-rectangle",
        width: 58,
        height: 30,
        "border-width": 2,
        "border-color": colour("--accent"),
        "text-valign": "center",
        "text-halign": "center",
      },
    },
    {
      selector: "node.cluster",
      style: {
        shape: "round-octagon",
        width: (cluster: NodeSingular) => 64 * scaleOf(cluster),
        height: (cluster: NodeSingular) => 32 * scaleOf(cluster),
        "font-size": (cluster: NodeSingular) => 9 * scaleOf(cluster),
        "text-max-width": "1000px",
        "border-width": (cluster: NodeSingular) => 2 * scaleOf(cluster),
        "border-color": colour("--accent"),
        "text-valign": "center",
        "text-halign": "center",
      },
    },
    { selector: "node.primary", style: { "border-width": 5, "border-style": "double" } },
    { selector: "node.secondary", style: { "border-style": "dashed" } },
    { selector: "node.ports-down", style: { "background-color": colour("--warn-panel") } },
    {
      selector: "node.host",
      style: {
        shape: "ellipse",
        width: 14,
        height: 14,
        "border-width": 1.5,
        "border-color": colour("--muted"),
        "font-size": 10,
        color: colour("--muted"),
        "text-valign": "bottom",
        "text-margin-y": 2,
      },
    },
    {
      selector: "edge",
      style: { "curve-style": "haystack", "haystack-radius": 0.3, width: 1.5, "line-color": colour("--load-0") },
    },
    { selector: "edge.attached", style: { width: 1, "line-color": colour("--line") } },
    ...LEVELS.flatMap((level, place) => [
      { selector: `edge.load-${place}`, style: { width: level.width, "line-color": colour(level.colour) } },
      // Wider, since clusters are viewed at a smaller scale.
      { selector: `edge.bundle.load-${place}`, style: { width: 3 * level.width } },
    ]),
    {
      selector: "node.gone",
      style: {
        "border-color": colour("--bad"),
        "border-style": "dashed" as const,
        "background-color": colour("--bad-panel"),
        color: colour("--bad"),
      },
    },
    {
      selector: "edge.gone",
      style: { width: 2.5, "line-color": colour("--bad"), "line-style": "dashed" as const },
    },
    { selector: "edge.partly-gone", style: { "line-style": "dashed" as const } },
    { selector: "edge.path", style: { "line-color": colour("--path"), width: 7 } },
    { selector: "node.path", style: { "border-color": colour("--path"), "border-width": 4 } },
    { selector: ".dimmed", style: { opacity: 0.18 } },
    {
      selector: ".picked",
      style: { "overlay-color": colour("--accent"), "overlay-opacity": 0.25, "overlay-padding": 6 },
    },
  ];
}

/** Returns the factor by which a cluster is larger than a switch: its switches' positions take that much more space. */
function scaleOf(cluster: NodeSingular): number {
  return Math.sqrt(Number(cluster.data("members")));
}
