// A text field with a list under it, by the ARIA combobox pattern. Anything may be typed.

import { h } from "./dom.js";

const MOST = 60;
let n = 0;

/** `options()` are {value, note, words}; `changed(value)` is told of each choice or entry. */
export function combo({ label, value, placeholder, options, changed }) {
  const id = `combo-${(n += 1)}`;
  const list = h("ul", { class: "list", id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  const input = h("input", {
    type: "text", id, role: "combobox", autocomplete: "off", spellcheck: "false", placeholder,
    "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list", maxlength: 500,
  });
  input.value = value;
  let found = [], at = -1, told = value;

  function tell(text) {
    close();
    if (text === told) return;
    told = text;
    changed(text);
  }
  function close() {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function open(all) {
    const words = all ? [] : input.value.toLowerCase().split(/[\s@]+/).filter(Boolean);
    found = options().filter((o) => words.every((w) => o.words.includes(w))).slice(0, MOST);
    list.replaceChildren(
      ...found.map((o, i) => {
        const item = h("li", { id: `${id}-${i}`, role: "option", "aria-selected": "false" }, o.value, h("small", {}, o.note));
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          pick(i);
        });
        return item;
      }),
    );
    at = -1;
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }
  function move(to) {
    if (list.hidden) open(true);
    if (!found.length) return;
    list.children[at]?.setAttribute("aria-selected", "false");
    at = (to + found.length) % found.length;
    list.children[at].setAttribute("aria-selected", "true");
    list.children[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `${id}-${at}`);
  }
  function pick(i) {
    input.value = found[i].value;
    tell(found[i].value);
  }
  input.addEventListener("input", () => open(false));
  input.addEventListener("click", () => list.hidden && open(true));
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", () => tell(input.value.trim()));
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1 };
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === "Enter" && at >= 0) pick(at);
    else if (event.key === "Enter") tell(input.value.trim());
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  const element = h("div", { class: "combo" }, h("label", { for: id }, label), input, list);
  return { element, input };
}
