// Asks for confirmation before a change, and names its effect.

import { button, el } from "./dom";

/** Returns whether the user agrees. */
export function confirmed(effect: string, verb: string): Promise<boolean> {
  return new Promise((resolve) => {
    let agrees = false;
    const dialog = el("dialog", { "aria-labelledby": "confirm-title" });
    const cancel = button("Cancel", () => dialog.close());
    const agree = button(verb, () => {
      agrees = true;
      dialog.close();
    }, { class: "primary" });
    dialog.append(el("p", { id: "confirm-title", class: "effect" }, effect), el("div", { class: "bar" }, cancel, agree));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(agrees);
    });
    document.body.append(dialog);
    dialog.showModal();
    cancel.focus();
  });
}
