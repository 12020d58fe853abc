// The user's selection.

import { type Network, switchOf } from "./network";

export type Picked = { kind: "switch" | "link" | "host"; key: string } | null;

export class Selection {
  picked: Picked = null;
  /** The switches, and the keys of the links, of the path shown. */
  path: ReadonlySet<string> = new Set();
  private watchers = new Set<() => void>();

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  pick(picked: Picked): void {
    if (picked?.kind === this.picked?.kind && picked?.key === this.picked?.key) return;
    this.picked = picked;
    this.watchers.forEach((watcher) => watcher());
  }

  setPath(path: Iterable<string>): void {
    this.path = new Set(path);
  }

  is(kind: string, key: string): boolean {
    return this.picked?.kind === kind && this.picked.key === key;
  }

  /** Returns whether an event is about the selection; without a selection, every event is. */
  concerns(about: readonly string[], network: Network): boolean {
    const picked = this.picked;
    if (picked === null) return true;
    if (picked.kind === "switch") return about.includes(picked.key);
    if (picked.kind === "host") return about.includes(network.hosts.get(picked.key)?.mac ?? picked.key);
    const link = network.links.get(picked.key);
    return link !== undefined && [link.a, link.b].every((end) => about.includes(switchOf(end)));
  }
}
