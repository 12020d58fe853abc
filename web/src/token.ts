// Asks for the token, which is kept only in this page's memory.

import { el } from "./dom";

export class TokenDialog {
  private readonly input = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  private readonly reason = el("p", { id: "token-reason" });
  private readonly dialog: HTMLDialogElement;

  constructor(use: (token: string) => void) {
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { id: "token-title" }, "This controller asks for a token"),
      this.reason,
      el("label", { for: "token" }, "Bearer token, from the file of --northbound-tokens"),
      this.input,
      el("div", { class: "bar" }, el("button", { type: "submit", class: "primary" }, "Use it")),
    );
    this.dialog = el("dialog", { "aria-labelledby": "token-title", "aria-describedby": "token-reason" }, form);
    // Without a token the page cannot show anything.
    this.dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = this.input.value.trim();
      this.input.value = "";
      this.dialog.close();
      use(token);
    });
    document.body.append(this.dialog);
  }

  ask(reason: string): void {
    this.reason.textContent = reason;
    if (!this.dialog.open) this.dialog.showModal();
  }
}
