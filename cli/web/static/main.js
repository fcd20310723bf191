// The page: controls on the left, one of two views on the right.

import { $, ROLES, count, h, scaled, size, toast } from "./dom.js";
import { ask, latest } from "./api.js";
import { CACHE_TYPES, LONGEST, depthAt, fromAddress, priceOf, shareOf, state, toAddress } from "./state.js";
import { combo } from "./combo.js";
import { wireTheme } from "./theme.js";
import { followPointer, saveFigure, showPredictions } from "./predict.js";

const known = { models: [], types: [], local: [], hosts: [], thisHost: "", public: false };
const dropped = new Map();
const DEFAULT_TYPE = "Q4_K_M";

// --- controls

const isWord = (model) => model !== "" && !/[:/\\]/.test(model);

function modelOptions() {
  const own = [...dropped].map(([value, name]) => ({ value, note: `${name}, dropped`, words: name.toLowerCase() }));
  const local = known.local.map((value) => ({ value, note: "local file", words: value.toLowerCase() }));
  return [...own, ...local, ...known.models];
}

function pairCard(pair, i) {
  const [name, type] = isWord(pair.model) ? pair.model.split("@") : [pair.model, ""];
  const select = h("select", { "aria-label": "File type" },
    ...known.types.map((t) => h("option", { selected: t === (type || DEFAULT_TYPE) }, t)));
  const typeField = h("label", {}, "Type", select);
  const row = h("div", { class: isWord(pair.model) ? "model-row" : "model-row alone" });
  const setModel = (text) => {
    const [plainName, typed] = text.split("@");
    pair.model = isWord(text) ? `${plainName}@${typed || select.value}` : text;
    render();
  };
  select.addEventListener("change", () => {
    pair.model = `${pair.model.split("@")[0]}@${select.value}`;
    update();
  });
  const model = combo({ label: "Model", value: name, placeholder: "name, or owner/repo", options: modelOptions, changed: setModel });
  row.append(model.element, ...(isWord(pair.model) ? [typeField] : []));
  const host = combo({
    label: "Host", value: pair.host, placeholder: known.thisHost ? `this machine (${known.thisHost})` : "RTX 4090, 2x RTX 3090, M4 Max …",
    options: () => known.hosts,
    changed: (text) => {
      pair.host = text;
      here.hidden = !known.thisHost || !text;
      update();
    },
  });
  const here = h("button", { type: "button", class: "here", hidden: !known.thisHost || !pair.host, onclick: () => ((pair.host = ""), render()) }, `Use this machine: ${known.thisHost}`);
  const drop = h("button", { type: "button", "aria-label": `Remove pair ${i + 1}`, onclick: () => remove(i) }, "Remove");
  const head = h("header", {}, state.pairs.length > 1 ? `Pair ${i + 1}` : "Model and host", state.pairs.length > 1 ? drop : null);
  return h("section", { class: `card pair k-${ROLES[i]}`, "aria-label": `Pair ${i + 1}` }, head, row, host.element, here);
}

function remove(i) {
  state.pairs.splice(i, 1);
  render();
}

function render() {
  $("pairs").replaceChildren(...state.pairs.map(pairCard));
  $("add").hidden = state.pairs.length >= 4;
  update();
}

let most = LONGEST;
function showSliders() {
  $("depth").value = 200 * shareOf(state.n_depth, most);
  $("prompt").value = Math.log2(state.n_prompt);
  $("depth-out").textContent = `${count(state.n_depth)} tokens`;
  $("prompt-out").textContent = `${count(state.n_prompt)} tokens`;
  $("depth").setAttribute("aria-valuetext", $("depth-out").textContent);
  $("prompt").setAttribute("aria-valuetext", $("prompt-out").textContent);
  for (const id of ["type_k", "type_v", "n_ubatch"]) $(id).value = String(state[id]);
  $("flash_attention").value = state.flash_attention ? "1" : "0";
  $("grid").value = state.grid;
  if (document.activeElement !== $("price")) $("price").value = state.price ?? "";
}

function wireControls() {
  for (const id of ["type_k", "type_v"]) $(id).replaceChildren(...CACHE_TYPES.map((t) => h("option", {}, t)));
  $("depth").addEventListener("input", () => {
    state.n_depth = depthAt($("depth").value / 200, most);
    update();
  });
  $("prompt").addEventListener("input", () => {
    state.n_prompt = 2 ** Number($("prompt").value);
    update();
  });
  for (const id of ["type_k", "type_v"]) $(id).addEventListener("change", () => ((state[id] = $(id).value), update()));
  $("n_ubatch").addEventListener("change", () => ((state.n_ubatch = Number($("n_ubatch").value)), update()));
  $("flash_attention").addEventListener("change", () => ((state.flash_attention = $("flash_attention").value === "1"), update()));
  $("price").addEventListener("input", () => ((state.price = priceOf($("price").value)), update()));
  $("grid").addEventListener("change", () => ((state.grid = $("grid").value), update()));
  $("add").addEventListener("click", () => {
    const last = state.pairs.at(-1);
    const others = ["RTX 3090", "M4 Max 40-core", "Ryzen AI Max+ 395", "RTX 5090"].filter((n) => !state.pairs.some((p) => p.host === n));
    state.pairs.push({ ...last, host: others[0], backend: "" });
    render();
  });
  for (const tab of document.querySelectorAll("button.tab")) tab.addEventListener("click", () => ((state.view = tab.dataset.view), update()));
  for (const button of document.querySelectorAll(".save")) button.addEventListener("click", () => saveFigure(button.dataset.figure).catch(complain));
  $("share").addEventListener("click", share);
}

async function share() {
  try {
    await navigator.clipboard.writeText(location.href);
    toast("Link copied");
  } catch {
    toast("The address bar has the link");
  }
}

// --- a dropped file

function wireDrop() {
  const place = $("drop");
  $("file").addEventListener("change", () => take($("file").files[0]));
  for (const name of ["dragenter", "dragover"])
    document.addEventListener(name, (event) => (event.preventDefault(), place.classList.add("over")));
  document.addEventListener("dragleave", (event) => event.relatedTarget || place.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
}

async function take(file) {
  if (!file) return;
  const note = $("drop-note");
  try {
    const { compactHeader } = await import("./gguf.js");
    const { bytes, read } = await compactHeader(file);
    const found = await ask(`inspect/upload?name=${encodeURIComponent(file.name.slice(0, 200))}`, bytes, { raw: true });
    dropped.set(found.address, file.name);
    note.textContent = `${file.name}: ${size(read)} read, ${size(bytes.length)} sent to this server.`;
    state.pairs[0].model = found.address;
    render();
  } catch (error) {
    note.textContent = `${file.name}: ${error.message}`;
    complain(error);
  }
}

// --- showing

function complain(error) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

const show = latest(async () => {
  try {
    if (state.view === "worksheet") await (await import("./worksheet.js")).showWorksheet();
    else {
      const results = await showPredictions();
      const longest = Math.max(...results.map((r) => r.depth.decode.n_depth.at(-1)));
      if (longest !== most) {
        most = longest;
        showSliders();
      }
    }
    $("problem").hidden = true;
  } catch (error) {
    complain(error);
  }
});

function update() {
  toAddress();
  showSliders();
  for (const tab of document.querySelectorAll("button.tab")) tab.setAttribute("aria-pressed", String(tab.dataset.view === state.view));
  for (const name of ["predict", "worksheet"]) $(`view-${name}`).hidden = state.view !== name;
  show();
}

async function start() {
  wireTheme($("theme"));
  fromAddress(location.search);
  wireControls();
  wireDrop();
  followPointer();
  const [status, models, hosts, { grids }] = await Promise.all([ask("status"), ask("models"), ask("hosts?brief=true"), ask("grids")]);
  const own = grids.some((g) => g.code === state.grid) || !state.grid ? [] : [h("option", { value: state.grid }, state.grid)];
  $("grid").closest("details").open = state.price !== null || state.grid !== "";
  $("grid").append(...own, ...grids.map((g) => h("option", { value: g.code }, `${g.name}, ${Math.round(g.grams_per_kwh)} g/kWh`)));
  known.public = status.public;
  known.types = models.file_types;
  known.local = models.local;
  known.models = models.models.map((m) => ({ value: m.name, note: m.title, words: `${m.name} ${m.title}`.toLowerCase() }));
  known.hosts = hosts.hosts.map(([name, bandwidth, sizes]) => ({
    value: name, note: `${scaled(bandwidth, "B/s")}${sizes.length ? `, ${sizes.map((s) => s / 2 ** 30).join("/")} GiB` : ""}`, words: name.toLowerCase(),
  }));
  $("about").textContent = `tokcast ${status.version}, fitted on ${status.n_observations.toLocaleString("en-US")} published configurations (${status.coefficients}).`;
  if (!state.pairs.length) state.pairs = [{ model: "gpt-oss-20b@MXFP4_MOE", host: "RTX 4090", backend: "" }];
  render();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (Math.abs(innerWidth - width) > 20) ((width = innerWidth), show());
  });
  if (!known.public) {
    try {
      known.thisHost = (await ask("hosts/this")).host.name;
      for (const button of document.querySelectorAll(".here")) {
        button.textContent = `Use this machine: ${known.thisHost}`;
        button.hidden = button.previousElementSibling.querySelector("input").value === "";
      }
    } catch { /* not recognised: a host must be named */ }
  }
}

start().catch(complain);
