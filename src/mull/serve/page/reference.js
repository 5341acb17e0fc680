// The API's description as a page: every operation, what it takes, and what it may answer.

import { make } from "./dom.js";
import { startTheme } from "./theme.js";

startTheme(document.getElementById("theme"));
const description = await (await fetch("/openapi.json")).json();

const resolve = (schema) => (schema?.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema);
const kind = (schema) => schema.type || (schema.anyOf || []).map((one) => resolve(one).type).filter(Boolean).join(" or ") || "object";

function table(rows) {
  return make("table", {}, make("tbody", {}, ...rows.map(([name, text]) => make("tr", {}, make("td", {}, make("code", {}, name)), make("td", {}, text)))));
}

function operation(path, verb, about) {
  const content = about.requestBody?.content || {};
  const type = Object.keys(content)[0], body = resolve(content[type]?.schema);
  const fields = Object.entries(body?.properties || {}).map(([name, schema]) => [name, `${kind(schema)}. ${schema.description || ""}`]);
  const queries = (about.parameters || []).map((one) => [`?${one.name}`, `${kind(one.schema)}. ${one.description || one.schema.description || ""}`]);
  const answers = Object.entries(about.responses).map(([code, one]) => [code, one.description]);
  const card = make("section", { class: "card operation" },
    make("h2", {}, make("span", { class: "verb" }, verb.toUpperCase()), make("code", {}, path), about.summary || ""),
    make("p", {}, about.description || ""));
  if (type) card.append(make("p", { class: "hint" }, `Body: ${type}`));
  if (fields.length || queries.length) card.append(table([...queries, ...fields]));
  card.append(table(answers));
  return card;
}

document.getElementById("operations").replaceChildren(...Object.entries(description.paths).flatMap(
  ([path, verbs]) => Object.entries(verbs).map(([verb, about]) => operation(path, verb, about))));
