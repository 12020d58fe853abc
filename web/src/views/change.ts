// Changes of a switch: entries, and the controller's role. Each names its effect, and asks for confirmation.

import { type FlowChange, Refused, type RoleChange } from "../api/client";
import { confirmed } from "../confirm";
import { button, el, setText } from "../dom";
import { clipped } from "../text";
import type { Context } from "./view";

const COMMANDS: Record<string, { verb: string; effect: (flow: string) => string }> = {
  add: { verb: "Add", effect: (flow) => `adds the entry ${flow}; one with the same match and priority is replaced.` },
  modify: { verb: "Modify", effect: (flow) => `gives all entries that ${matching(flow)} matches other actions: ${flow}.` },
  modify_strict: { verb: "Modify", effect: (flow) => `gives the entry with just this match and priority other actions: ${flow}.` },
  delete: { verb: "Delete", effect: (flow) => `deletes all entries that ${flow === "" ? "there are" : `${flow} matches`}.` },
  delete_strict: { verb: "Delete", effect: (flow) => `deletes the entry with just this match and priority: ${flow}.` },
};

const EXAMPLE = "priority=10,in_port=1,actions=output:2";

export class Changes {
  readonly element = el("div", { class: "changes" });
  private readonly controls: HTMLElement;
  private readonly readOnly = el("p", {}, "The token of this page may only read: it changes nothing at this switch.");
  private readonly command = el("select", { id: "command" });
  private readonly flow = el("input", {
    id: "flow",
    type: "text",
    placeholder: EXAMPLE,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "flow-problem",
  });
  private readonly problem = el("p", { id: "flow-problem", class: "problem", role: "alert", hidden: true });
  private readonly done = el("p", { role: "status" });
  private readonly role = el("select", { id: "role" });

  constructor(
    private readonly context: Context,
    private readonly id: string,
    private readonly changed: () => void,
  ) {
    this.command.append(...Object.keys(COMMANDS).map((name) => el("option", { value: name }, name.replace("_", " "))));
    this.role.append(...["equal", "primary", "secondary"].map((name) => el("option", { value: name }, name)));
    const form = el(
      "form",
      { class: "bar" },
      el("label", { for: "command" }, "Command"),
      this.command,
      el("label", { for: "flow" }, "Entry"),
      this.flow,
      el("button", { type: "submit" }, "Send…"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.sendFlow();
    });
    const ask = button("Ask for it…", () => void this.sendRole());
    const role = el("div", { class: "bar" }, el("label", { for: "role" }, "Role of this controller"), this.role, ask);
    this.controls = el("details", {}, el("summary", {}, "Change this switch"), form, this.problem, role, this.done);
    this.element.append(this.controls, this.readOnly);
    this.update();
  }

  /** Shows the controls only if the controller would accept their requests. */
  update(): void {
    const { isReadOnly } = this.context.live.client;
    this.controls.hidden = isReadOnly;
    this.readOnly.hidden = !isReadOnly;
  }

  private get name(): string {
    return clipped(this.context.live.network.switches.get(this.id)?.label ?? this.id);
  }

  private async sendFlow(): Promise<void> {
    const command = COMMANDS[this.command.value];
    const flow = this.flow.value.trim();
    if (command === undefined) return;
    const effect = `Switch ${this.name}: this ${command.effect(clipped(flow, 400))}`;
    const body: FlowChange = { command: this.command.value, flow };
    await this.send(effect, command.verb, "flows", body);
  }

  private async sendRole(): Promise<void> {
    const role = this.role.value;
    const meaning: Record<string, string> = {
      equal: "It sends and receives everything.",
      primary: "Other controllers that are primary become secondary.",
      secondary: "It may only read, and its programs change nothing at this switch.",
    };
    const effect = `Switch ${this.name}: this controller asks to be ${role}. ${meaning[role] ?? ""}`;
    const body: RoleChange = { role };
    await this.send(effect, "Ask", "role", body);
  }

  /** Sends a change if the user agrees, and shows the result. */
  private async send(effect: string, verb: string, path: string, body: unknown): Promise<void> {
    this.problem.hidden = true;
    setText(this.done, "");
    if (!(await confirmed(effect, verb))) return;
    try {
      await this.context.live.client.post(`api/v1/switches/${this.id}/${path}`, body);
      setText(this.done, "The switch has confirmed it.");
      this.changed();
    } catch (error) {
      this.context.live.refuse(error);
      const example = error instanceof Refused && error.example !== null ? ` For example: ${error.example}` : "";
      setText(this.problem, `${error instanceof Error ? error.message : String(error)}${example}`);
      this.problem.hidden = false;
      this.flow.focus();
    }
  }
}

/** Returns an entry without its actions. */
function matching(flow: string): string {
  return flow.replace(/,?actions=.*$/, "");
}
