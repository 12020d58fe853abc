// The path that the controller would choose between two hosts.

import type { Hop } from "../api/client";
import { button, el, offer, setText } from "../dom";
import { Network } from "../model/network";
import { clipped } from "../text";
import { Grid } from "./grid";
import type { Context, View } from "./view";

export function pathView(context: Context): View {
  const { live, selection } = context;
  const from = el("select", { id: "from" });
  const to = el("select", { id: "to" });
  const note = el("p", { role: "status" });
  const hops = new Grid("Hops", ["Switch", "In by port", "Out by port"]);
  const show = button("Show", () => void find(), { class: "primary" });
  const picture = button("Show in the picture", () => context.go("network"), { hidden: true });
  const element = el(
    "div",
    { class: "view plain" },
    el("div", { class: "bar" }, el("label", { for: "from" }, "From host"), from, el("label", { for: "to" }, "to host"), to, show, picture),
    note,
    hops.element,
  );

  async function find(): Promise<void> {
    picture.hidden = true;
    hops.show([]);
    selection.setPath([]);
    try {
      const ends = new URLSearchParams({ from: from.value, to: to.value });
      const path = await live.client.get<Hop[]>(`api/v1/paths?${ends}`);
      present(path);
    } catch (error) {
      live.refuse(error);
      setText(note, error instanceof Error ? error.message : String(error));
    }
  }

  function present(path: readonly Hop[]): void {
    setText(note, path.length === 0 ? "There is no path between these hosts." : "The shortest path, which the controller would choose.");
    const { network } = live;
    hops.show(
      path.map(({ switch: id, in_port, out_port }) => {
        const name = clipped(network.switches.get(id)?.label ?? id);
        return { key: id, cells: [name, in_port, out_port] };
      }),
    );
    const switches = new Set(path.map((hop) => hop.switch));
    const ends = new Set(path.flatMap((hop) => [`${hop.switch}:${hop.in_port}`, `${hop.switch}:${hop.out_port}`]));
    const links = [...network.links.values()].filter((link) => ends.has(link.a) && ends.has(link.b));
    selection.setPath([...switches, ...links.map((link) => link.key)]);
    picture.hidden = path.length === 0;
  }

  function update(): void {
    const hosts = [...live.network.hosts.values()].sort((a, b) => (a.mac < b.mac ? -1 : 1));
    const values = hosts.map((host) => [host.mac, `${clipped(Network.hostName(host), 40)} (${host.mac})`] as const);
    for (const select of [from, to]) offer(select, values);
    show.disabled = hosts.length < 2;
    if (hosts.length < 2) setText(note, "A path needs two hosts: hosts are known once they have sent something, if the program `hosts` runs.");
    if (from.value === to.value && hosts.length > 1 && document.activeElement !== to) to.value = hosts.find((host) => host.mac !== from.value)?.mac ?? "";
  }

  return { element, update, close: () => undefined };
}
