// One request: its way, its placement, its signals, and what followed.

import { get } from "./api.js";
import { empty, facts, h, put } from "./dom.js";
import { count, known, ms, time } from "./format.js";
import { story } from "./parts.js";
import { outcomeOf, TONES, workersOf } from "./requests.js";

export function request() {
  const node = h("div", { class: "view" });
  let shows = 0;
  return {
    node,
    title: (id) => `Request ${id}`,
    async show(id) {
      const mine = ++shows;
      const heading = h("h1", { tabindex: "-1" }, "Request");
      const head = h("div", { class: "bar-top" }, h("a", { href: "#requests", class: "back" }, "All requests"), heading);
      put(node, head);
      let r;
      try {
        r = await get(`api/requests/${encodeURIComponent(id)}`);
      } catch (err) {
        if (mine !== shows) return;
        if (err.status !== 404) throw err;
        put(node, head, empty("It is not kept any more, or never was: the last 1,000 requests are. ", h("a", { href: "#requests" }, "Show those")));
        return;
      }
      if (mine !== shows) return;
      const pill = h("span", { class: "pill", "data-tone": TONES[r.outcome] ?? "dim" }, outcomeOf(r));
      put(node, h("div", { class: "bar-top" }, h("a", { href: "#requests", class: "back" }, "All requests"), heading, pill),
        h("section", { class: "panel", "aria-label": "In short" }, summary(r)), story(r));
    },
  };
}

export function summary(r) {
  return facts([
    ["Time", time(r.time)], ["Route", r.route], ["Asked for", r.asked], [r.outcome === "ok" || r.outcome === "cancelled" ? "Answered by" : "Model", r.model], ["Worker", workersOf(r)], ["Key", r.key],
    ["Status", `${r.status}${r.end && r.end !== "ok" ? `, ${r.end}` : ""}`], ["First byte", r.first_byte_ms > 0 ? ms(r.first_byte_ms) : undefined], ["Total", ms(r.total_ms)],
    ["Kvasir's own", known(r.overhead_ms) ? ms(r.overhead_ms) : undefined],
    ["Prompt", known(r.prompt_tokens) ? `${count(r.prompt_tokens)} tokens${known(r.cached_tokens) ? `, ${count(r.cached_tokens)} cached` : ""}` : undefined],
    ["Answer", known(r.completion_tokens) ? `${count(r.completion_tokens)} tokens${r.stream ? ", streamed" : ""}` : undefined],
    ["Retries", r.retries > 0 ? count(r.retries) : undefined], ["Id", h("code", null, r.id)],
    ["Trace", r.trace_id ? h("code", null, r.trace_id) : undefined],
  ]);
}
