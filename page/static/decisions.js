// Decisions: what was decided how often, how sure the category was, and what another threshold would change.

import { get, query } from "./api.js";
import { empty, h, panel, put, table, text, width } from "./dom.js";
import { count, percent, plural, score } from "./format.js";
import { histogram } from "./chart.js";

export function decisions() {
  const sum = h("p", { class: "sum" });
  const again = h("button", { type: "button", onclick: () => load() }, "Count again");
  const chart = histogram("Confidence of the category");
  const slider = h("input", { id: "threshold", type: "range", min: "0", max: "1", step: "0.01", value: "0.6", oninput: moved });
  const at = h("output", { class: "num", for: "threshold" });
  const change = h("p", { class: "change", role: "status" }), examples = h("div");
  const decided = h("div"), categories = h("div");
  const none = empty("No request was judged yet. ", h("a", { href: "#try" }, "Try it"), " sends one.");
  none.hidden = true;
  const all = h("div", { class: "stack", hidden: true },
    h("div", { class: "columns" }, panel("Decisions", decided), panel("Categories", categories)),
    panel("How sure the category was",
      h("div", { class: "histo" }, chart.node, slider, h("div", { class: "axis under", "aria-hidden": "true" }, h("span", null, "0"), h("span", null, "0.25"), h("span", null, "0.5"), h("span", null, "0.75"), h("span", null, "1"))),
      h("p", { class: "threshold" }, h("label", { for: "threshold" }, "Threshold"), at), change, examples));
  const node = h("div", { class: "view" }, h("div", { class: "bar-top" }, h("h1", { tabindex: "-1" }, "Decisions"), sum, again), none, all);
  let timer = 0, touched = false, last = null, loads = 0;

  function moved() {
    touched = true;
    mark();
    clearTimeout(timer);
    timer = setTimeout(() => load().catch((err) => text(change, err.message)), 150);
  }
  function mark() {
    const threshold = Number(slider.value);
    text(at, score(threshold) + (last && Math.abs(threshold - last.threshold) > 1e-9 ? `, configured is ${score(last.threshold)}` : ", as configured"));
    if (last) chart.update(last.confidence, threshold, last.threshold);
  }
  async function load() {
    const mine = ++loads;
    const d = await get(`api/decisions${query({ threshold: touched ? slider.value : undefined })}`);
    if (mine !== loads) return;
    last = d;
    if (!touched) slider.value = String(d.threshold);
    none.hidden = d.of > 0;
    all.hidden = d.of === 0;
    text(sum, `${plural(d.of, "request")} judged, of those kept`);
    put(decided, ranked(d.decisions, d.of, "No decision held: every request went to the model that it named, or to the default one."));
    put(categories, ranked(d.categories, d.of, "None was sure enough."));
    mark();
    const n = d.would_change.count;
    text(change, n === 0 ? (touched ? "With this threshold, none of them would have got another category." : "Move the threshold to see which requests would have got another category.") : `With this threshold, ${count(n)} of ${plural(d.of, "request")} (${percent(n / d.of)}) would have got another category.`);
    put(examples, n > 0 && table({
      caption: "Requests that the threshold would change", heads: ["Request", "Category", ["Confidence", "n"], "Decision now"],
      rows: d.would_change.examples.map((e) => [h("a", { href: `#requests/${e.seq}` }, e.id), e.category, score(e.confidence), e.decision_now || "–"]),
    }));
  }
  return { node, title: () => "Decisions", show: load };
}

// ranked is names with counts, the most frequent first, and their share of all requests that were
// judged: of many no decision holds.
function ranked(list, of, otherwise) {
  if (list.length === 0) return h("p", { class: "dim" }, otherwise);
  const sorted = [...list].sort((a, b) => b.count - a.count);
  const most = sorted[0].count;
  return h("ul", { class: "ranked" }, sorted.map((row) => {
    const bar = h("span", { class: "bar" });
    width(bar, row.count / most);
    return h("li", null, h("span", { class: "name" }, row.name || "none", row.model && h("span", { class: "dim" }, ` ${row.model}`)), h("span", { class: "track", "aria-hidden": "true" }, bar),
      h("span", { class: "num" }, count(row.count)), h("span", { class: "num dim" }, of > 0 ? percent(row.count / of) : ""));
  }));
}
