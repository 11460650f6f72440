// The parts of a request's story, for the view of one and for Try it: its way, its placement, its signals.

import { facts, h, panel, put, table, width } from "./dom.js";
import { count, decimal, known, ms, NONE, plural, score } from "./format.js";

const STEPS = {
  identify: "key identified", read: "body read", admit: "limits checked", judge: "judged", guard: "guards", reuse: "cache looked up", follow: "waited for an equal request",
  edit: "body changed", locate: "prompt to tokens", place: "worker chosen", queue: "queued", prefill: "prefill leg", decode: "worker, to its first byte", stream: "answer passed on",
};
const WORKERS = new Set(["prefill", "decode", "stream", "follow", "queue"]);

// waterfall shows when each step began and ended. What Kvasir does takes microseconds of a request
// of seconds, so the scale can be that of the whole, up to the first byte, or of Kvasir's own steps.
export function waterfall(r) {
  const steps = r.steps ?? [];
  const end = Math.max(r.total_ms ?? 0, ...steps.map((step) => step.end_ms));
  const own = Math.max(0, ...steps.filter((step) => !WORKERS.has(step.name)).map((step) => step.end_ms));
  const scales = [["whole", end], ["to the first byte", r.first_byte_ms], ["Kvasir's own", own]].filter(([, to]) => known(to) && to > 0);
  const rows = steps.map((step) => {
    const bar = h("span", { class: `bar ${WORKERS.has(step.name) ? "theirs" : "ours"}` });
    const label = STEPS[step.name] ?? step.name;
    const failed = step.status >= 400;
    const note = [step.worker, step.status && step.status !== 200 ? `status ${step.status}` : "", step.note].filter(Boolean).join(", ");
    return {
      step, bar,
      node: h("li", { class: failed ? "failed" : null },
        h("span", { class: "name" }, label, note && h("span", { class: "dim note" }, note)),
        h("span", { class: "track" }, bar), h("span", { class: "num" }, ms(step.end_ms - step.begin_ms)), h("span", { class: "num dim begin" }, `at ${ms(step.begin_ms)}`)),
    };
  });
  const first = h("span", { class: "firstbyte", title: "first byte" });
  const scale = h("p", { class: "dim scale" });
  const buttons = h("div", { class: "choice", role: "group", "aria-label": "Scale" });
  const show = (to, chosen) => {
    for (const { step, bar } of rows) {
      const begin = Math.min(1, step.begin_ms / to), share = Math.min(1, step.end_ms / to) - begin;
      bar.style.marginLeft = `${(begin * 100).toFixed(2)}%`;
      width(bar, share);
      bar.hidden = begin >= 1;
    }
    first.hidden = !(r.first_byte_ms > 0) || r.first_byte_ms > to;
    first.style.left = `${((100 * (r.first_byte_ms ?? 0)) / to).toFixed(2)}%`;
    scale.textContent = `0 to ${ms(to)}${r.first_byte_ms > 0 ? `; first byte at ${ms(r.first_byte_ms)}, last at ${ms(r.total_ms)}` : ""}`;
    for (const button of buttons.children) button.setAttribute("aria-pressed", String(button.textContent === chosen));
  };
  if (scales.length > 1) buttons.append(...scales.map(([name, to]) => h("button", { type: "button", onclick: () => show(to, name) }, name)));
  if (scales.length > 0) show(scales[0][1], scales[0][0]);
  return panel("Its way", h("div", { class: "row" }, scale, buttons),
    rows.length === 0 ? h("p", { class: "dim" }, "No step was recorded.") : h("div", { class: "waterfall" }, h("div", { class: "marks", "aria-hidden": "true" }, first), h("ol", null, rows.map(({ node }) => node))));
}

// PARTS are what prices are made of: of predict in milliseconds, of kv in blocks. Those that are only
// steps of another's sum are not drawn.
const PARTS = [
  ["ttft", "until its own first token"], ["work", "what it costs the others there"], ["load", "how full the worker is"], ["evict", "blocks that it evicts"],
  ["fill", "for the blocks it holds"], ["prefill", "blocks to compute"], ["blocks", "blocks in use"], ["requests", "requests there"],
];
const SAVED = { copied: "spared, as others hold the prompt too" };
const STEPS_OF_SUM = new Set(["backlog", "prompt", "credit"]);

const WHYS = { predict: "the lowest price", kv: "the lowest price", pinned: "the request names it", busy: "all others are busy", last_resort: "no other is left" };

// placement shows where the request went, and what every candidate would have cost.
export function placement(p) {
  if (!p) return null;
  const candidates = p.candidates ?? [];
  const unit = p.policy === "kv" ? (n) => `${decimal(n)} blocks` : ms;
  const drawn = (c) => Object.entries(c.parts ?? {}).filter(([name, value]) => value > 0 && !STEPS_OF_SUM.has(name));
  const widest = Math.max(1e-9, ...candidates.map((c) => Math.max(c.cost, drawn(c).reduce((sum, [, value]) => sum + value, 0))));
  const used = PARTS.filter(([name]) => candidates.some((c) => c.parts?.[name] > 0));
  const legs = new Set(candidates.map((c) => c.leg));
  return panel("Placement",
    facts([
      ["Policy", p.policy], ["Why", WHYS[p.why] ?? p.why], ["Prompt", known(p.tokens) ? `${count(p.tokens)} tokens${p.exact ? "" : ", estimated"}` : undefined],
      ["Overlap", known(p.prompt_blocks) && p.prompt_blocks > 0 ? `${count(p.overlap_blocks)} of ${plural(p.prompt_blocks, "block")} of ${p.block_tokens} tokens` : undefined],
      ["Price", known(p.cost) ? unit(p.cost) : undefined], ["First byte predicted", known(p.predicted_first_byte_ms) ? ms(p.predicted_first_byte_ms) : undefined],
      ["Problem", p.error],
    ]),
    candidates.length === 0 ? h("p", { class: "dim" }, "No worker was priced.") : [
      used.length > 0 && h("ul", { class: "partkey" }, used.map(([name, label]) => h("li", { class: `part ${name}` }, label))),
      LEGS.filter(([leg]) => legs.has(leg)).map(([leg, label]) => [
        legs.size > 1 && h("h3", null, label),
        h("ul", { class: "prices" }, candidates.filter((c) => c.leg === leg).sort((a, b) => b.chosen - a.chosen || a.cost - b.cost).map((c) => priced(c, drawn(c), widest, unit))),
      ]),
      p.left_out > 0 && h("p", { class: "dim" }, `${plural(p.left_out, "dearer candidate")} not kept.`),
    ]);
}

const LEGS = [["whole", "One worker does all of it"], ["prefill", "The prefill leg of a hand-over"], ["decode", "The decode leg of a hand-over"]];

// priced is one candidate with its price.
function priced(c, parts, widest, unit) {
  const bars = (parts.length > 0 ? parts : [["ttft", c.cost]]).map(([name, value]) => {
    const bar = h("span", { class: `bar part ${name}` });
    width(bar, value / widest);
    return bar;
  });
  return h("li", { class: c.chosen ? "chosen" : null },
    h("span", { class: "name" }, known(c.rank) ? `${c.worker}, rank ${c.rank}` : c.worker, c.chosen && h("span", { class: "pill", "data-tone": "ok" }, "chosen"), c.aside && h("span", { class: "pill", "data-tone": "warn" }, "aside")),
    h("span", { class: "track", "aria-hidden": "true" }, bars),
    h("span", { class: "num" }, unit(c.cost)),
    h("span", { class: "dim detail" }, [
      c.of > 0 ? `holds ${count(c.overlap_blocks)} of ${plural(c.of, "block")}` : "", `${plural(c.requests, "request")} there`,
      c.backlog_tokens > 0 ? `${count(c.backlog_tokens)} tokens to compute` : "", known(c.predicted_first_byte_ms) && !c.parts?.ttft ? `first byte in ${ms(c.predicted_first_byte_ms)}` : "",
      c.slow > 1 ? `${decimal(c.slow)} × slower now` : "",
      priceInWords(c, unit),
    ].filter(Boolean).join(" · ")));
}

function priceInWords(c, unit) {
  const labels = { ...Object.fromEntries(PARTS), ...SAVED };
  return Object.entries(c.parts ?? {}).filter(([name, value]) => Math.abs(value) >= 0.005 && !STEPS_OF_SUM.has(name)).map(([name, value]) => `${labels[name] ?? name} ${unit(value)}`).join(", ");
}

// against is a score beside its threshold.
function against(value, threshold, tone) {
  if (!known(value)) return NONE;
  const bar = h("span", { class: `bar ${tone}` }), mark = h("span", { class: "at" });
  width(bar, value);
  if (known(threshold)) mark.style.left = `${(threshold * 100).toFixed(1)}%`;
  else mark.hidden = true;
  return h("span", { class: "against" }, h("span", { class: "meter", "aria-hidden": "true" }, bar, mark), h("span", { class: "num" }, score(value), known(threshold) && h("span", { class: "dim" }, ` threshold ${score(threshold)}`)));
}

// signals shows what was found in the request, each score against its threshold.
export function signals(s) {
  if (!s) return null;
  const rows = [];
  const add = (name, what, measure) => rows.push([name, what, measure ?? ""]);
  if (s.category) add("Category", s.category.confidence >= (s.category.threshold ?? 0) ? s.category.label : `${s.category.label}, below the threshold`, against(s.category.confidence, s.category.threshold, s.category.confidence >= s.category.threshold ? "ok" : "dim"));
  if (s.jailbreak) add("Attack", `${s.jailbreak.type || (s.jailbreak.score >= s.jailbreak.threshold ? "found" : "none")}; action: ${s.jailbreak.action}`, against(s.jailbreak.score, s.jailbreak.threshold, s.jailbreak.score >= s.jailbreak.threshold ? "bad" : "ok"));
  if (s.pii) {
    const types = s.pii.types ?? [], denied = s.pii.denied ?? [];
    add("Personal data", [types.length === 0 ? "none" : types.join(", "), denied.length > 0 ? `not allowed: ${denied.join(", ")}` : "", s.pii.redacted > 0 ? `${s.pii.redacted} redacted` : "", `action: ${s.pii.action}`].filter(Boolean).join("; "), known(s.pii.threshold) ? `threshold ${score(s.pii.threshold)}` : "");
  }
  if (s.unjudged) add("Not judged", `the guard ${s.unjudged} let it pass`);
  if (s.language) add("Language", s.language);
  if (s.complexity) add("Complexity", s.complexity);
  for (const m of s.matched ?? []) if (m.kind !== "category" || m.name !== s.category?.label) add(m.kind, m.name, m.score > 0 && m.score < 1 ? score(m.score) : "");
  if (s.hidden_characters > 0) add("Hidden characters", count(s.hidden_characters));
  return panel("Signals", rows.length === 0 ? h("p", { class: "dim" }, "It was not judged.") : table({ caption: "Signals", className: "signals", heads: ["Signal", "Found", "Score and threshold"], rows }));
}

export function decision(d, more = []) {
  const pairs = [
    ["Decision", d?.name], ["Guard", d?.guard], ["Reasoning", d?.reasoning], ["System prompt", d?.injected === true ? "set by the decision" : undefined], ...more,
  ].filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return pairs.length === 0 ? null : panel("Decision", facts(pairs));
}

export function cached(c) {
  if (!c) return null;
  const whys = { empty: "no entry to compare it with", score: "the nearest entry is not alike enough", age: "the entry that fits is too old" };
  const words = { hit: "answered from it", miss: "no entry fits", bypass: "not looked up", wait: "answered with an equal request's" };
  return panel("Cache", facts([
    ["Verdict", `${c.result}${words[c.result] ? `: ${words[c.result]}` : ""}`], ["Why", whys[c.why] ?? c.why], ["Score", known(c.similarity) ? score(c.similarity) : undefined],
    ["Age of the entry", known(c.age_ms) ? ms(c.age_ms) : undefined], ["Entry", c.entry ? h("a", { href: `#cache/${encodeURIComponent(c.entry)}` }, c.entry) : undefined],
  ]));
}

// story is all of a request.
export function story(r) {
  return [
    waterfall(r), placement(r.placement),
    h("div", { class: "columns" }, signals(r.signals), h("div", { class: "stack" }, decision(r.decision), cached(r.cache_detail))),
  ];
}

// show replaces what an element has by a story.
export const show = (el, r) => put(el, story(r));
