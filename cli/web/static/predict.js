// The answer: verdicts, drawings, memory, ledger, and why.

import { $, ROLES, count, h, plain, putSvg, rate, save, scaled, size, time, toast } from "./dom.js";
import { DEPTH_UNIT, conditions, costs, pairBody, state } from "./state.js";
import { ask } from "./api.js";

let shown = [];

export const widthOf = (place) => Math.round(Math.min(2000, Math.max(280, place.clientWidth || 640)));
export const themeNow = () => document.documentElement.dataset.theme || "light";

/** Ask for every pair and show what comes back. */
export async function showPredictions() {
  const place = $("plot-decode");
  const body = { ...conditions(), ...costs(), pairs: state.pairs.map(pairBody), look: { theme: themeNow(), width: widthOf(place) } };
  $("verdicts").classList.add("busy");
  try {
    const [answer, roofline] = await Promise.all([ask("compare", body), wideRoofline()]);
    shown = answer.results;
    $("verdicts").replaceChildren(...shown.map(verdict));
    putSvg($("plot-decode"), answer.figures.decode);
    putSvg($("plot-prefill"), answer.figures.prefill);
    putSvg($("plot-roofline"), roofline ?? answer.figures.roofline);
    $("key").replaceChildren(...shown.map((r, i) => h("span", { class: `k-${ROLES[i]}` }, r.label)));
    $("memory").replaceChildren(...memory());
    $("energy").replaceChildren(...shown.map(energy));
    $("why").replaceChildren(...shown.flatMap(why));
    $("ledger").replaceChildren(h("div", { class: "ledgers" }, ...shown.flatMap((r) => r.ledger.map((l) => ledger(r, l)))));
  } finally {
    $("verdicts").classList.remove("busy");
  }
  return shown;
}

/** Return the roofline drawn for its own, wider place. */
async function wideRoofline() {
  const look = { theme: themeNow(), width: widthOf($("plot-roofline")) };
  if (Math.abs(look.width - widthOf($("plot-decode"))) < 40) return null;
  return ask("figure/roofline.svg", { ...conditions(), pairs: state.pairs.map(pairBody), look }, { text: true });
}

function rangeBar(p, most) {
  const bar = h("div", { class: "range", role: "img", "aria-label": `between ${rate(p.low)} and ${rate(p.high)}` }, h("i"), h("b"));
  bar.children[0].style.left = `${(100 * p.low) / most}%`;
  bar.children[0].style.right = `${100 - (100 * p.high) / most}%`;
  bar.children[1].style.left = `${(100 * p.tok_per_s) / most}%`;
  return bar;
}

function speed(p, what, isMain, most) {
  return h(
    "div", { class: isMain ? "speed main" : "speed" },
    h("div", { class: "what" }, what),
    h("div", { class: "number" }, rate(p.tok_per_s), h("span", { class: "unit" }, "tok/s")),
    rangeBar(p, most),
    h("div", { class: "what" }, `${Math.round(100 * p.level)} % range ${rate(p.low)} – ${rate(p.high)}`),
  );
}

function verdict(r, i) {
  const of = (phase) => r.prediction.predictions.find((p) => p.phase === phase);
  const most = (phase) => 1.04 * Math.max(...shown.map((s) => s.prediction.predictions.find((p) => p.phase === phase).high));
  const decode = of("decode"), prefill = of("prefill"), { host, memory: m, provenance } = r.prediction;
  const fits = { true: ["good", `Fits: ${size(m.need_bytes)} of ${size(m.available_bytes ?? 0)}`], false: ["bad", `Does not fit: ${size(m.need_bytes)} of ${size(m.available_bytes ?? 0)}`], null: ["", "Memory of this host not known"] }[m.fits];
  const trust = { "same host": ["good", "Measured on this chip"], "same chip family": ["", "Measured on its family"], "spec sheet only": ["bad", "Data sheet only"] }[provenance.evidence];
  const n = host.n_devices > 1 ? `${host.n_devices}× ` : "";
  return h(
    "article", { class: `card verdict k-${ROLES[i]}` },
    h("h2", {}, r.name),
    h("p", { class: "on" }, `on ${n}${host.name} · ${host.runtime}, ${host.backend}`),
    h("div", { class: "speeds" }, speed(decode, "Generating", true, most("decode")), speed(prefill, "Reading", false, most("prefill"))),
    h("div", { class: "badges" },
      h("span", { class: `badge ${fits[0]}` }, fits[1]),
      h("span", { class: `badge ${trust[0]}` }, trust[1]),
      h("span", { class: "badge" }, `First token after ${time(prefill.seconds)}`),
      m.largest_context ? h("span", { class: "badge" }, `Up to ${count(m.largest_context)} of context`) : null),
  );
}

function memory() {
  return shown.flatMap((r, i) => r.devices.map((d) => device(r, d, ROLES[i])));
}

function device(r, d, role) {
  const room = d.available_bytes ?? Math.max(...shown.flatMap((s) => s.devices.map((x) => x.need_bytes)));
  const most = Math.max(room, d.need_bytes);
  const isOver = d.available_bytes !== null && d.need_bytes > d.available_bytes;
  const bar = h("div", { class: `bar k-${role}${isOver ? " over" : ""}`, role: "img",
    "aria-label": `${d.name}: ${d.parts.map((p) => `${p.name} ${size(p.bytes)}`).join(", ")}` });
  d.parts.forEach((p, i) => {
    const part = h("i", { class: `p${i}`, title: `${p.name}: ${size(p.bytes)}` });
    part.style.width = `${(100 * p.bytes) / most}%`;
    bar.append(part);
  });
  const of = d.available_bytes === null ? "" : ` of ${size(d.available_bytes)}`;
  return h("div", { class: "device" },
    h("span", { class: "who" }, r.name, h("small", {}, `${d.name}, ${r.prediction.host.name}`)),
    bar,
    h("span", { class: "much" }, `${size(d.need_bytes)}${of}`),
    h("span", { class: "parts" }, d.parts.map((p) => `${p.name} ${size(p.bytes)}`).join(" · ")));
}

const joules = (v) => `${Number(v.toPrecision(3)).toLocaleString("en-US")} J`;
const METERS = { gpu_board: "the card alone", gpu_part: "the GPU's part of the chip", package: "the chip's package", soc: "the chip" };

function energyRow(p) {
  const e = p.energy;
  return h("tr", {},
    h("th", { scope: "row" }, p.phase === "decode" ? "Generating" : "Reading"),
    h("td", { class: "n" }, joules(e.joules_per_token)),
    h("td", { class: "n" }, `${joules(e.low)} – ${joules(e.high)}`),
    h("td", { class: "n" }, `${Math.round(e.watts)} W`));
}

function answers(t) {
  const wh = (j) => `${Number((j / 3600).toPrecision(3)).toLocaleString("en-US")} Wh`;
  const parts = [`1,000 answers of ${count(t.n_prompt)} + ${count(t.n_gen)} tokens: ${wh(t.joules)} (${wh(t.low_joules)} – ${wh(t.high_joules)})`];
  if (t.cost !== null) parts.push(`${Number(t.cost.toPrecision(3))} at ${t.price_per_kwh} a kWh`);
  if (t.co2_grams !== null) parts.push(`${Number(t.co2_grams.toPrecision(3)).toLocaleString("en-US")} g CO2`);
  return `${parts.join(", ")}.`;
}

function energy(r, i) {
  const told = r.prediction.energy, rows = r.prediction.predictions.filter((p) => p.energy);
  const who = shown.length > 1 ? h("p", { class: `who k-${ROLES[i]}` }, r.label) : null;
  if (!rows.length) return h("div", {}, who, h("p", {}, told?.why_none || "Energy is told of a model on one device."));
  const { meter, evidence } = rows[0].energy;
  return h("div", {}, who,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Energy, ${r.label}` }, h("table", {},
      h("thead", {}, h("tr", {}, ...["", "a token", `${Math.round(100 * rows[0].energy.level)} % range`, "power"].map((t, n) => (n ? h("th", { scope: "col", class: "n" }, t) : h("td", {}, t))))),
      h("tbody", {}, ...rows.map(energyRow)))),
    h("p", {}, answers(told.thousand_answers)),
    h("p", { class: "hint" }, `Of ${METERS[meter] ?? meter}, not of the machine at the plug; evidence: ${evidence}.`));
}

function why(r, i) {
  const copy = h("button", { type: "button", class: "quiet", onclick: () => navigator.clipboard?.writeText(r.check).then(() => toast("Command copied")) }, "Copy");
  const notes = r.prediction.warnings;
  return [
    shown.length > 1 ? h("p", { class: `who k-${ROLES[i]}` }, r.label) : null,
    ...r.explanation.map((text) => h("p", {}, text)),
    notes.length ? h("ul", {}, ...notes.map((text) => h("li", {}, text))) : null,
    h("div", { class: "check" }, h("code", {}, r.check), copy),
  ].filter(Boolean);
}

function ledger(r, l) {
  const total = (key) => l.rows.reduce((sum, row) => sum + row[key], 0);
  const large = l.rows.filter((row) => row.seconds >= 0.005 * l.seconds);
  const small = l.rows.filter((row) => row.seconds < 0.005 * l.seconds);
  const sum = (rows, key) => rows.reduce((n, row) => n + row[key], 0);
  const others = { component: `${small.length} smaller parts`, type: "", bound: "overhead", bytes: sum(small, "bytes"), flops: sum(small, "flops"), seconds: sum(small, "seconds") };
  const rows = [...large, ...(small.length > 1 ? [others] : small)].map((row) => {
    const part = h("i", { class: row.bound });
    part.style.width = `${(100 * row.seconds) / l.seconds}%`;
    return h("tr", {},
      h("th", { scope: "row" }, `${plain(row.component)} ${row.type}`.trim()),
      h("td", { class: "n" }, row.bytes ? size(row.bytes) : ""),
      h("td", { class: "n" }, row.flops ? scaled(row.flops, "FLOP") : ""),
      h("td", { class: "n" }, time(row.seconds)),
      h("td", { class: "of" }, h("span", { class: "share" }, part), `${((100 * row.seconds) / l.seconds).toFixed(1)} %`));
  });
  const what = l.phase === "decode" ? "one generated token" : `${state.n_prompt.toLocaleString("en-US")} prompt tokens`;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${what}, ${r.label}` }, h("table", {},
    h("caption", {}, shown.length > 1 ? `${r.label}: ${what}` : `For ${what}`),
    h("thead", {}, h("tr", {}, ...["part", "bytes", "operations", "time", "share"].map((t, i) => h("th", { scope: "col", class: i > 0 && i < 4 ? "n" : "" }, t)))),
    h("tbody", {}, ...rows),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "all"), h("td", { class: "n" }, size(total("bytes"))), h("td", { class: "n" }, scaled(total("flops"), "FLOP")), h("td", { class: "n" }, time(l.seconds)), h("td", {}, "")))));
}

/** Return a curve's value at a depth, between two known ones by proportion. */
function valueAt(curve, key, depth) {
  const d = curve.n_depth;
  if (depth > d.at(-1)) return null;
  const i = Math.max(1, d.findIndex((x) => x >= depth));
  if (d.length === 1) return curve[key][0];
  return curve[key][i - 1] + ((curve[key][i] - curve[key][i - 1]) * (depth - d[i - 1])) / (d[i] - d[i - 1]);
}

/** Show values under the pointer in the drawings over depth, and what a dot is. */
export function followPointer() {
  const tip = $("tip");
  const hide = () => (tip.hidden = true);
  function put(event, ...lines) {
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${Math.max(6, event.clientY - box.height - 12)}px`;
  }
  for (const phase of ["decode", "prefill"]) {
    const place = $(`plot-${phase}`);
    place.addEventListener("pointerleave", hide);
    place.addEventListener("pointermove", (event) => {
      const svg = place.querySelector("svg");
      if (!svg || !shown.length) return;
      const box = svg.getBoundingClientRect();
      const { left, right, high } = svg.dataset;
      const x = ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width;
      const share = (x - left) / (right - left);
      if (share < 0 || share > 1) return hide();
      const depth = Math.round(DEPTH_UNIT * (2 ** (share * Math.log2(1 + high / DEPTH_UNIT)) - 1));
      const lines = shown.map((r, i) => {
        const c = r.depth[phase], v = valueAt(c, "tok_per_s", depth);
        return v === null ? null : h("div", { class: `k-${ROLES[i]}` }, `${rate(v)} tok/s (${rate(valueAt(c, "low", depth))} – ${rate(valueAt(c, "high", depth))})`);
      });
      put(event, h("span", {}, `at ${depth.toLocaleString("en-US")} tokens`), ...lines.filter(Boolean));
    });
  }
  const roof = $("plot-roofline");
  roof.addEventListener("pointerleave", hide);
  roof.addEventListener("pointermove", (event) => {
    const text = event.target.closest?.("circle")?.querySelector("title")?.textContent;
    if (text) put(event, text);
    else hide();
  });
}

/** Save a drawing as it is seen, with its receipt. */
export async function saveFigure(name) {
  const place = $(`plot-${name}`);
  const look = { theme: themeNow(), width: widthOf(place) };
  const text = await ask(`export/${name}.svg`, { ...conditions(), pairs: state.pairs.map(pairBody), look }, { text: true });
  save(`tokcast-${name}.svg`, text, "image/svg+xml");
  toast("Saved; `tokcast verify FILE` checks its receipt");
}
