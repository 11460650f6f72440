// Cache: how full it is, what it answered, and one entry with its question and answer.

import { get, send } from "./api.js";
import { empty, facts, h, panel, put, table, text } from "./dom.js";
import { bytes, count, ms, percent, score, span, time } from "./format.js";

export function cache({ confirm, say }) {
  const sum = h("p", { class: "sum" });
  const again = h("button", { type: "button", onclick: () => load().catch((err) => say(err.message, true)) }, "Count again");
  const find = h("input", { id: "find-entry", autocomplete: "off", spellcheck: "false", placeholder: "as x-kvasir-cache-entry has it" });
  const form = h("form", { class: "filters", onsubmit: (e) => { e.preventDefault(); if (find.value.trim()) location.hash = `#cache/${encodeURIComponent(find.value.trim())}`; } },
    h("label", null, h("span", null, "Entry"), find), h("button", { type: "submit" }, "Show"));
  const one = h("div"), stats = h("div"), hits = h("div");
  const node = h("div", { class: "view" }, h("div", { class: "bar-top" }, h("h1", { tabindex: "-1" }, "Cache"), sum, again), stats, form, one, panel("Answered from it lately", hits));

  let opened = 0;

  async function load() {
    const c = await get("api/cache?limit=100");
    const looked = c.hits + c.misses;
    text(sum, c.store === "off" ? "off" : `store: ${c.store}`);
    put(stats, h("dl", { class: "tiles" }, [
      ["Entries", c.entries < 0 ? "not known" : count(c.entries)], ["Memory", bytes(c.bytes)], ["Hits", count(c.hits)], ["Misses", count(c.misses)],
      ["Hits of lookups", looked > 0 ? percent(c.hits / looked) : "–"], ["Not looked up", count(c.bypassed)],
    ].map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
    put(hits, c.store === "off" ? empty("The cache is off: ", h("code", null, "cache.store"), " in the configuration.") : c.recent.length === 0 ? empty("No request of those kept was answered from it. Ask the same twice by ", h("a", { href: "#try" }, "Try it"), ".") : table({
      caption: "Requests answered from the cache", heads: ["Time", "Entry", ["Score", "n"], ["Age", "n"], "Model", "Request"],
      rows: c.recent.map((r) => [time(r.time), h("a", { href: `#cache/${encodeURIComponent(r.entry)}` }, r.entry), score(r.similarity), ms(r.age_ms), r.model, h("a", { href: `#requests/${encodeURIComponent(r.request_id)}` }, "open")]),
    }));
  }

  async function open(id) {
    const mine = ++opened;
    put(one);
    if (!id) return;
    find.value = id;
    try {
      const e = await get(`cache/${encodeURIComponent(id)}`);
      if (mine !== opened) return;
      const drop = h("button", { type: "button", class: "danger", onclick: () => dropEntry(e) }, "Drop it…");
      put(one, h("section", { class: "panel entry" },
        h("div", { class: "row" }, h("h2", null, `Entry ${e.id}`), drop),
        facts([["Model", e.model], ["Tenant", e.tenant || "everybody"], ["Scope", e.scope], ["Age", span(e.age_s * 1000)], ["Kept for another", span(e.expires_in_s * 1000)], ["Answer", bytes(e.answer_bytes)]]),
        h("h3", null, "Question"), h("pre", { tabindex: "0", "aria-label": "Question" }, e.question),
        h("h3", null, "Answer, its beginning"), h("pre", { tabindex: "0", "aria-label": "Answer" }, e.answer_preview)));
    } catch (err) {
      if (mine === opened) put(one, h("section", { class: "panel" }, h("p", null, err.message)));
    }
  }

  async function dropEntry(e) {
    if (!(await confirm({ title: `Drop entry ${e.id}?`, text: "The next request that it would have answered is answered by a worker, and kept anew.", yes: "Drop it", danger: true }))) return;
    try {
      await send("DELETE", `cache/${encodeURIComponent(e.id)}`);
      say(`Entry ${e.id} was dropped.`);
      location.hash = "#cache";
      await load();
    } catch (err) {
      say(err.message, true);
    }
  }
  return {
    node,
    title: (id) => (id ? `Cache entry ${id}` : "Cache"),
    async show(id) {
      await Promise.all([load(), open(id)]);
    },
  };
}
