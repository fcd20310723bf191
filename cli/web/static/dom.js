// Elements, numbers and words. Text is only ever set as text, never as markup.

export const $ = (id) => document.getElementById(id);
export const ROLES = ["a", "b", "c", "d"];

/** Return an element; `attrs` are properties or attributes, children are nodes or text. */
export function h(tag, attrs = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** Put a drawing of the server's into the page. */
export function putSvg(place, text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (parsed.nodeName !== "svg") throw new Error("expected a drawing");
  place.replaceChildren(document.importNode(parsed, true));
}

const digits = (value, n) => value.toLocaleString("en-US", { maximumFractionDigits: n, minimumFractionDigits: n });
export const rate = (v) => (v >= 100 ? digits(v, 0) : v >= 10 ? digits(v, 1) : digits(v, 2));
export const count = (n) => (n >= 1024 && n % 256 === 0 ? `${n / 1024}k` : n.toLocaleString("en-US"));

export function size(n) {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (n >= unit) return `${digits(n / unit, unit === 2 ** 30 ? 2 : 1)} ${name}`;
  return `${digits(n, 0)} B`;
}
export function time(s) {
  if (s >= 1) return `${s.toPrecision(3)} s`;
  return s >= 1e-3 ? `${(1e3 * s).toPrecision(3)} ms` : `${(1e6 * s).toPrecision(3)} µs`;
}
export function scaled(v, unit) {
  for (const [scale, name] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (v >= scale) return `${Number((v / scale).toPrecision(4))} ${name}${unit}`;
  return `${Number(v.toPrecision(4))} ${unit}`;
}
export const plain = (text) => text.replaceAll("_", " ");

let timer;
export function toast(text) {
  $("toast").textContent = text;
  $("toast").classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => $("toast").classList.remove("shown"), 2600);
}

export function save(name, content, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
