// The API's description as a page that can be read and tried.

import { $, h } from "./dom.js";
import { wireTheme } from "./theme.js";

const TITLES = { predict: "Predict, compare, inspect", hosts: "Hosts", worksheet: "Worksheets", drawings: "Drawings", kernels: "Matrix products and file types", meters: "Live readings" };
let description;

const resolved = (schema) => (schema?.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema);

function exampleOf(raw) {
  const schema = resolved(raw) ?? {};
  if (schema.examples) return schema.examples[0];
  if ("default" in schema && schema.default !== null) return schema.default;
  if (schema.anyOf) return exampleOf(schema.anyOf[0]);
  if (schema.enum) return schema.enum[0];
  if (schema.type === "array") return [exampleOf(schema.items)];
  if (schema.type === "object") {
    const required = schema.required ?? [];
    const shown = Object.entries(schema.properties ?? {}).filter(([name]) => required.includes(name) || name === "host");
    return Object.fromEntries(shown.map(([name, s]) => [name, exampleOf(s)]));
  }
  return { string: "text", integer: 1, number: 1, boolean: false }[schema.type] ?? null;
}

function typeOf(raw) {
  const schema = resolved(raw) ?? {};
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((t) => t !== "null").join(" or ");
  if (schema.enum) return schema.enum.join(", ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.title && schema.type === "object" ? schema.title : schema.type ?? "anything";
}

function limits(raw) {
  const schema = resolved(raw) ?? {};
  const from = schema.anyOf ? schema.anyOf[0] : schema;
  const names = { minimum: "at least", exclusiveMinimum: "above", maximum: "at most", exclusiveMaximum: "below", maxLength: "length up to", maxItems: "items up to" };
  return Object.entries(names).filter(([key]) => key in from).map(([key, text]) => `${text} ${from[key]}`).join(", ");
}

function table(rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Fields" }, h("table", {}, h("thead", {}, h("tr", {}, ...["field", "type", "default", "bounds"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows)));
}

function fields(schema) {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).map(([name, s]) => row(name, s, required.includes(name)));
}

const row = (name, schema, isRequired) =>
  h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, typeOf(schema)), h("td", {}, isRequired ? "required" : "default" in schema ? JSON.stringify(schema.default) : ""), h("td", {}, limits(schema)));

function operation(path, method, op) {
  const body = op.requestBody?.content?.["application/json"]?.schema;
  const isUpload = Boolean(op.requestBody) && !body;
  const parameters = op.parameters ?? [];
  const query = parameters.filter((p) => p.in === "query");
  const named = parameters.filter((p) => p.in === "path").reduce((text, p) => text.replace(`{${p.name}}`, exampleOf(p.schema)), path);
  const words = query.filter((p) => p.required || p.name === "host").map((p) => `${p.name}=${encodeURIComponent(p.name === "name" ? "RTX 4090" : exampleOf(p.schema))}`).join("&");
  const address = h("input", { type: "text", value: named + (words ? `?${words}` : ""), "aria-label": "Address" });
  const text = h("textarea", { "aria-label": "Body", spellcheck: "false" });
  if (body) text.value = JSON.stringify(exampleOf(body), null, 2);
  const out = h("pre", { tabindex: "0" });
  out.hidden = true;
  const send = h("button", { type: "button", class: "quiet", onclick: async () => {
    const stop = new AbortController();
    const stream = path.endsWith("/stream");
    if (stream) setTimeout(() => stop.abort(), 3500);
    out.hidden = false;
    out.textContent = "…";
    try {
      const answer = await fetch(address.value, { method: method.toUpperCase(), signal: stop.signal, ...(body ? { body: text.value, headers: { "Content-Type": "application/json" } } : {}) });
      const reader = answer.body.getReader(), decoder = new TextDecoder();
      let all = "";
      try {
        for (let part = await reader.read(); !part.done; part = await reader.read()) out.textContent = `${answer.status}\n${(all += decoder.decode(part.value, { stream: true })).slice(0, 20000)}`;
      } catch (error) { if (error.name !== "AbortError") throw error; }
      try { out.textContent = `${answer.status}\n${JSON.stringify(JSON.parse(all), null, 2).slice(0, 20000)}`; } catch { /* no JSON: as it came */ }
    } catch (error) { out.textContent = error.message; }
  } }, "Send");
  const curl = `curl -s ${body ? `-H 'Content-Type: application/json' -d '${JSON.stringify(exampleOf(body))}' ` : isUpload ? "--data-binary @model.gguf-head " : ""}'${location.origin}${address.value}'`;
  return h("details", { class: "card" },
    h("summary", {}, h("span", { class: `method ${method}` }, method.toUpperCase()), h("code", {}, path), h("span", { class: "what" }, op.summary ?? "")),
    body ? table(fields(resolved(body))) : null,
    parameters.length ? table(parameters.map((p) => row(p.name, p.schema, p.required))) : null,
    h("pre", { tabindex: "0" }, h("code", {}, curl)),
    isUpload ? h("p", { class: "hint" }, "The body is the first bytes of a GGUF file, as far as its tensor table reaches.") : h("div", {}, h("label", {}, "Address", address), body ? h("label", {}, "Body", text) : null, send),
    out);
}

async function start() {
  wireTheme(null);
  description = await (await fetch("/openapi.json")).json();
  const groups = new Map();
  for (const [path, methods] of Object.entries(description.paths))
    for (const [method, op] of Object.entries(methods)) {
      const tag = op.tags?.[0] ?? "other";
      groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, op)]);
    }
  $("routes").replaceChildren(...[...groups].map(([tag, list]) => h("section", { class: "group" }, h("h2", {}, TITLES[tag] ?? tag), ...list)));
}

start().catch((error) => {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
});
