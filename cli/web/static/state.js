// What is asked, kept in the address so that a view can be shared.

const CACHE_TYPES = ["F16", "Q8_0", "Q4_0", "F32", "BF16", "Q4_1", "IQ4_NL", "Q5_0", "Q5_1"];
export { CACHE_TYPES };
export const DEPTH_UNIT = 512, LONGEST = 131072;

export const state = {
  pairs: [],
  n_prompt: 512,
  n_depth: 0,
  n_ubatch: 512,
  type_k: "F16",
  type_v: "F16",
  flash_attention: true,
  price: null,
  grid: "",
  view: "predict",
};

const whole = (text, low, high, otherwise) => {
  const n = Number(text);
  return text !== null && text !== "" && Number.isInteger(n) && n >= low && n <= high ? n : otherwise;
};

const PRICES = [1e-9, 1e18];
export const priceOf = (text) => {
  const n = Number(text);
  return text !== null && text !== "" && n >= PRICES[0] && n <= PRICES[1] ? n : null;
};

export function fromAddress(search) {
  const q = new URLSearchParams(search);
  const hosts = q.getAll("h"), backends = q.getAll("b");
  state.pairs = q.getAll("m").slice(0, 4).map((model, i) => ({
    model: model.slice(0, 500), host: (hosts[i] ?? "").slice(0, 200), backend: backends[i] ?? "",
  }));
  state.n_depth = whole(q.get("d"), 0, 1 << 24, 0);
  state.n_prompt = whole(q.get("p"), 1, 1 << 20, 512);
  state.n_ubatch = whole(q.get("ub"), 1, 65536, 512);
  state.type_k = CACHE_TYPES.includes(q.get("ctk")) ? q.get("ctk") : "F16";
  state.type_v = CACHE_TYPES.includes(q.get("ctv")) ? q.get("ctv") : "F16";
  state.flash_attention = q.get("fa") !== "0";
  state.price = priceOf(q.get("price"));
  state.grid = (q.get("grid") ?? "").slice(0, 40);
  state.view = q.get("view") === "worksheet" ? "worksheet" : "predict";
}

export function toAddress() {
  const q = new URLSearchParams();
  for (const pair of state.pairs) {
    q.append("m", pair.model);
    q.append("h", pair.host);
    if (state.pairs.some((p) => p.backend)) q.append("b", pair.backend);
  }
  if (state.n_depth) q.set("d", state.n_depth);
  if (state.n_prompt !== 512) q.set("p", state.n_prompt);
  if (state.n_ubatch !== 512) q.set("ub", state.n_ubatch);
  if (state.type_k !== "F16") q.set("ctk", state.type_k);
  if (state.type_v !== "F16") q.set("ctv", state.type_v);
  if (!state.flash_attention) q.set("fa", "0");
  if (state.price !== null) q.set("price", state.price);
  if (state.grid) q.set("grid", state.grid);
  if (state.view !== "predict") q.set("view", state.view);
  history.replaceState(null, "", `?${q}`);
}

export const pairBody = (pair) => ({
  model: pair.model,
  ...(pair.host ? { host: pair.host } : {}),
  ...(pair.backend ? { backend: pair.backend } : {}),
});

export const costs = () => ({
  ...(state.price === null ? {} : { price_per_kwh: state.price }),
  ...(state.grid ? { grid: state.grid } : {}),
});

export const conditions = () => ({
  n_prompt: state.n_prompt,
  n_depth: state.n_depth,
  n_ubatch: state.n_ubatch,
  type_k: state.type_k,
  type_v: state.type_v,
  ...(state.flash_attention ? {} : { flash_attention: false }),
});

/** The slider's place of a depth, and back: logarithmic but for its start. */
export const depthAt = (share, most) => {
  const d = DEPTH_UNIT * (2 ** (share * Math.log2(1 + most / DEPTH_UNIT)) - 1);
  const step = d < 2048 ? 128 : d < 16384 ? 512 : 2048;
  return Math.min(Math.round(d / step) * step, most);
};
export const shareOf = (depth, most) => Math.min(Math.log2(1 + depth / DEPTH_UNIT) / Math.log2(1 + most / DEPTH_UNIT), 1);
