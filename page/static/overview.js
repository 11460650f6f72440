// Overview: is it well, how much does it do, and how fast.

import { get } from "./api.js";
import { h, put, text } from "./dom.js";
import { count, ms, rate, since } from "./format.js";
import { lineChart } from "./chart.js";
import { fleet } from "./fleet.js";
import { merge, upToNow } from "./series.js";
import { stateOf } from "./store.js";

const perSecond = (n) => `${rate(n)}/s`;
const quantiles = (member) => ["p50", "p95", "p99"].map((q, i) => ({ label: q, of: (sample) => sample[member]?.[q] ?? null, format: ms, tone: [0, 3, 1][i] }));

export function overview({ live, later }) {
  const hint = h("p", { class: "hint" }, "No request yet: ", h("a", { href: "#try" }, "Try it"), " sends one.");
  hint.hidden = true;
  const state = h("p", { class: "state" }), reasons = h("ul", { class: "reasons" });
  const status = h("section", { class: "status", "aria-label": "State" }, state, hint, reasons);
  const figures = ["Workers up", "Under way", "Queued", "Running for"].map((name) => ({ name, value: h("dd", null, "–") }));
  const charts = [
    lineChart({ title: "Requests", lines: [{ label: "that ended", of: (x) => x.requests, format: perSecond, tone: 0 }] }),
    lineChart({
      title: "Time to first byte", lines: quantiles("ttfb_ms"), floor: 10,
      also: [["hits, p50", "hit_ms"], ["not streamed, p50", "whole_ms"]].map(([label, member]) => ({ label, of: (sample) => sample[member]?.p50 ?? null, format: ms })),
    }),
    lineChart({ title: "Time between tokens", lines: quantiles("itl_ms"), floor: 10 }),
    lineChart({
      title: "Hits, blocks and errors",
      lines: [
        { label: "cache hits", of: (x) => x.cache_hits, format: perSecond, tone: 4 },
        { label: "blocked", of: (x) => x.blocked, format: perSecond, tone: 1 },
        { label: "errors", of: (x) => x.errors, format: perSecond, tone: 2 },
      ],
    }),
    lineChart({
      title: "Tokens",
      lines: [
        { label: "in", of: (x) => x.tokens_in, format: perSecond, tone: 0 },
        { label: "of them cached", of: (x) => x.tokens_cached, format: perSecond, tone: 4 },
        { label: "out", of: (x) => x.tokens_out, format: perSecond, tone: 3 },
      ],
      floor: 10,
    }),
    lineChart({
      title: "Load",
      lines: [
        { label: "under way", of: (x) => x.in_flight, format: count, tone: 0 },
        { label: "of them queued", of: (x) => x.queue, format: count, tone: 1 },
      ],
      floor: 5,
    }),
  ];
  const workers = fleet();
  const node = h("div", { class: "view" },
    h("h1", { class: "unseen", tabindex: "-1" }, "Overview"),
    status,
    h("dl", { class: "tiles" }, figures.map(({ name, value }) => h("div", null, h("dt", null, name), value))),
    h("div", { class: "charts" }, charts.map((chart) => chart.node)),
    workers.node);

  let samples = [], step = 5, started = null, timer = 0, shown = false;

  function tell(o) {
    const { word, tone } = stateOf(o);
    status.dataset.tone = tone;
    text(state, tone === "ok" ? "Ready: nothing is degraded." : word.charAt(0).toUpperCase() + word.slice(1) + (o.reasons.length > 0 ? ":" : "."));
    if (reasons.dataset.of !== JSON.stringify(o.reasons)) {
      reasons.dataset.of = JSON.stringify(o.reasons);
      put(reasons, o.reasons.map((reason) => h("li", null, reason)));
    }
    if (o.started) started = o.started;
    const values = [`${count(o.workers_up)} of ${count(o.workers_all)}`, count(o.in_flight), count(o.queued), started ? since(started) : "–"];
    figures.forEach(({ value }, i) => text(value, values[i]));
  }
  function draw() {
    const now = samples.at(-1)?.t ?? Date.now() / 1000;
    for (const chart of charts) chart.update(samples, now);
    hint.hidden = samples.some((sample) => sample.requests > 0);
  }
  async function load() {
    const o = await get("api/overview");
    [samples, step] = [upToNow(o), o.series.step_s];
    tell(o);
    draw();
  }
  live.on("overview", (o) => {
    samples = merge(samples, o, step);
    if (!shown) return;
    tell(o);
    later(draw);
  });
  live.on("workers", () => shown && later(workers.draw));
  live.on("open", () => shown && load().catch(() => {}));

  return {
    node,
    title: () => "Overview",
    async show() {
      shown = true;
      clearInterval(timer);
      timer = setInterval(() => !document.hidden && load().catch(() => {}), 30_000); // what was put together here, as it was counted there
      workers.draw();
      await load();
    },
    hide() {
      shown = false;
      clearInterval(timer);
    },
  };
}
