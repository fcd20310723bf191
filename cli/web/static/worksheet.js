// Worksheet: every number an input with unit and origin; what follows, and what matters most.

import { $, ROLES, h, plain, putSvg, rate, save, scaled, size, time, toast } from "./dom.js";
import { ask, latest } from "./api.js";
import { conditions, pairBody, state } from "./state.js";
import { themeNow } from "./predict.js";

const ORIGINS = ["measured", "published", "counted", "fitted", "assumed"];
const edits = new Map();
let at = 0, asked = "", sheet = null;

function body() {
  const look = { theme: themeNow(), width: Math.round(Math.min(1100, Math.max(280, $("answer").clientWidth - 44))) };
  const listed = [...edits].map(([key, e]) => ({ key, ...e }));
  return { ...conditions(), pair: pairBody(state.pairs[Math.min(at, state.pairs.length - 1)]), edits: listed, look };
}

/** Show the worksheet of the pair chosen; edits are of one pair under one setting. */
export async function showWorksheet() {
  at = Math.min(at, state.pairs.length - 1);
  const now = JSON.stringify([conditions(), pairBody(state.pairs[at])]);
  if (now !== asked) edits.clear();
  asked = now;
  sheet = await ask("worksheet", body());
  draw();
}

const again = latest(async () => {
  try {
    sheet = await ask("worksheet", body());
    results();
    $("problem").hidden = true;
  } catch (error) {
    $("problem").textContent = error.message;
    $("problem").hidden = false;
  }
});

function draw() {
  const choose = h("select", { "aria-label": "Pair", onchange: (event) => ((at = event.target.selectedIndex), showWorksheet()) },
    ...state.pairs.map((p, i) => h("option", { selected: i === at }, `${p.model} on ${p.host || "this machine"}`)));
  const undo = h("button", { type: "button", class: "quiet", id: "undo", onclick: () => (edits.clear(), showWorksheet()) }, "Undo edits");
  const exports = ["JSON", "CSV", "SVG"].map((form) =>
    h("button", { type: "button", class: "quiet", "data-form": form, onclick: () => exported(form.toLowerCase()) }, `Export ${form}`));
  $("view-worksheet").replaceChildren(
    h("section", { class: "card" },
      h("div", { class: "sheet-head" }, h("div", {}, h("h2", {}, "Worksheet"), h("p", { class: "hint" }, "First order, from stated inputs. Edit any number; prefill and decode stay apart. Every export carries a SHA-256 receipt that `tokcast verify` checks.")), h("div", { class: "exports" }, choose, undo, ...exports))),
    h("section", { class: `results k-${ROLES[at]}`, id: "sheet-results", "aria-live": "polite" }),
    h("figure", { class: "card" }, h("figcaption", {}, h("h2", {}, "Roofline with each input a fifth lower and higher")), h("div", { class: "plot", id: "plot-sheet" })),
    h("section", { class: "card" }, h("h2", {}, "What the answer hangs on"), h("p", { class: "hint" }, "One input at a time × 0.8, 1 and 1.2, the others as they are; the largest change first."), h("div", { class: "ledgers", id: "sheet-sensitivity" })),
    h("section", { class: "card" }, h("h2", {}, "Inputs"), inputs("shared", "The host", ""), inputs("decode", "Decode, for one token"), inputs("prefill", `Prefill, for ${state.n_prompt.toLocaleString("en-US")} tokens`)),
    h("section", { class: "card" }, h("h2", {}, "Who owns the bytes"), ownership()),
    h("section", { class: "card" }, h("h2", {}, "Formulas"), formulas()),
  );
  results();
}

// --- inputs

const outside = (href, text) => h("a", { href, target: "_blank", rel: "noopener noreferrer" }, text);

/** Return a source with its addresses, and files of repositories, as links. */
function sourceCell(text) {
  return text.split(/(https:\/\/[^\s;]+|[\w.-]+\/[\w.-]+@[0-9a-f]{10,40} [\w./-]+)/).map((piece) => {
    if (piece.startsWith("https://")) return outside(piece, new URL(piece).hostname);
    const file = /^([\w.-]+\/[\w.-]+)@([0-9a-f]+) ([\w./-]+)$/.exec(piece);
    return file ? outside(`https://github.com/${file[1]}/blob/${file[2]}/${file[3]}`, file[1]) : piece;
  });
}

/** Return a factor and a prefix that make a value readable in its unit. */
function readable(value, unit) {
  const steps = ["B", "B/s", "FLOP", "FLOP/s"].includes(unit) ? [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] : unit === "s" ? [[1, ""], [1e-3, "m"], [1e-6, "µ"]] : [];
  return steps.find(([factor]) => value >= factor) ?? [1, ""];
}

function inputRow(i) {
  const [factor, prefix] = readable(i.value, i.unit);
  const shownUnit = prefix + i.unit;
  const number = h("input", { type: "number", step: "any", min: "0", value: Number((i.value / factor).toPrecision(8)), "aria-label": `${i.label}, ${shownUnit}`, "data-key": i.key, title: `${i.value} ${i.unit}` });
  const origin = h("select", { "aria-label": `Origin of ${i.label}` }, ...ORIGINS.map((o) => h("option", { selected: o === i.origin }, o)));
  const row = h("tr", { class: edits.has(i.key) ? "edited" : "" },
    h("th", { scope: "row" }, i.label), h("td", { class: "n" }, number), h("td", {}, shownUnit),
    h("td", {}, origin), h("td", { class: "source" }, ...sourceCell(i.source)));
  const change = (isOrigin) => {
    const value = Number(number.value) * factor;
    const isSound = number.value !== "" && Number.isFinite(value) && value > 0 && value < 1e18;
    number.classList.toggle("bad", !isSound);
    number.setAttribute("aria-invalid", String(!isSound));
    if (!isSound) {
      $("problem").textContent = `${i.label}: expected a finite number above 0`;
      $("problem").hidden = false;
      return;
    }
    if (!isOrigin) origin.value = edits.get(i.key)?.origin ?? "assumed";
    edits.set(i.key, { value, origin: origin.value });
    row.classList.add("edited");
    again();
  };
  number.addEventListener("input", () => change(false));
  origin.addEventListener("change", () => change(true));
  return row;
}

function inputs(group, title) {
  const mine = sheet.inputs.filter((i) => (group === "shared" ? !i.key.includes(".") : i.key.startsWith(`${group}.`)));
  return h("div", { class: "scroll inputs", tabindex: "0", role: "region", "aria-label": title }, h("table", {}, h("caption", {}, title),
    h("thead", {}, h("tr", {}, ...["input", "value", "unit", "origin", "source"].map((t, i) => h("th", { scope: "col", class: i === 1 ? "n" : "" }, t)))),
    h("tbody", {}, ...mine.map(inputRow))));
}

// --- what follows

function results() {
  $("undo").disabled = edits.size === 0;
  $("sheet-results").replaceChildren(...sheet.results.map(resultCard));
  putSvg($("plot-sheet"), sheet.figure);
  $("sheet-sensitivity").replaceChildren(...["decode", "prefill"].map(sensitivity));
}

function resultCard(r) {
  const side = { memory: "memory bound", compute: "compute bound" }[r.side];
  const pairs = [
    ["bytes", size(r.bytes)], ["operations", scaled(r.flops, "FLOP")],
    ["intensity", `${Number(r.intensity.toPrecision(3))} FLOP/B`], ["ridge", `${Number(r.ridge.toPrecision(3))} FLOP/B`],
    ["ceiling there", scaled(r.ceiling_flops_per_s, "FLOP/s")], ["at the roof", time(r.bound_seconds)], ["predicted", time(r.seconds)],
  ];
  return h("article", { class: "card" }, h("h2", {}, r.phase === "decode" ? "Decode" : "Prefill"),
    h("p", { class: "big" }, rate(r.tok_per_s), h("span", { class: "unit" }, " tok/s")),
    h("p", { class: side ? "" : "withheld" }, side ?? "no label: an input a fifth off would change it"),
    h("dl", {}, ...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

function sensitivity(phase) {
  const mine = sheet.sensitivity.filter((s) => s.phase === phase && s.effect > 0.001).slice(0, 10);
  const most = mine[0]?.effect ?? 1;
  const rows = mine.map((s) => {
    const part = h("i", { class: "memory" });
    part.style.width = `${(100 * s.effect) / most}%`;
    return h("tr", {}, h("th", { scope: "row" }, s.label), ...s.tok_per_s.map((v) => h("td", { class: "n" }, rate(v))),
      h("td", { class: "of" }, h("span", { class: "share" }, part), `${(100 * s.effect).toFixed(1)} %`));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Sensitivity of ${phase}` }, h("table", {}, h("caption", {}, `${phase === "decode" ? "Decode" : "Prefill"}, tok/s`),
    h("thead", {}, h("tr", {}, ...["input", "× 0.8", "× 1", "× 1.2", "most"].map((t, i) => h("th", { scope: "col", class: i > 0 && i < 4 ? "n" : "" }, t)))),
    h("tbody", {}, ...rows)));
}

function ownership() {
  const cells = (phase, name) => {
    const of = (kind) => sheet.inputs.find((i) => i.key === `${phase}.${name}.${kind}`)?.value;
    return h("td", { class: "n" }, of("bytes") ? size(of("bytes")) : "none");
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Byte ownership" }, h("table", {},
    h("thead", {}, h("tr", {}, ...["owner", "decode", "prefill", "counts", "leaves out"].map((t, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "n" : "" }, t)))),
    h("tbody", {}, ...sheet.ownership.map((o) => h("tr", {}, h("th", { scope: "row" }, o.title), cells("decode", o.name), cells("prefill", o.name), h("td", {}, o.owns), h("td", {}, o.excludes))))));
}

function formulas() {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Formulas" }, h("table", {}, h("tbody", {}, ...Object.entries(sheet.formulas).map(([name, text]) =>
    h("tr", {}, h("th", { scope: "row" }, plain(name)), h("td", {}, h("code", {}, text)), h("td", {}, sheet.units[name] ?? ""))))));
}

async function exported(form) {
  try {
    const text = await ask(`export/worksheet.${form}`, body(), { text: true });
    save(`tokcast-worksheet.${form}`, text, { json: "application/json", csv: "text/csv", svg: "image/svg+xml" }[form]);
    toast("Saved; `tokcast verify FILE` checks its receipt");
  } catch (error) {
    $("problem").textContent = error.message;
    $("problem").hidden = false;
  }
}
