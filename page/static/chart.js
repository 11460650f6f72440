// Small line charts of the last 15 minutes, and a histogram.

import { h, s, text } from "./dom.js";
import { count, known, NONE, time } from "./format.js";

const WIDE = 300, HIGH = 84; // units of the drawing
const SPANS = [120, 300, 900]; // seconds: the shortest that has all there is

// lineChart draws lines over time. lines are { label, of: sample -> number or null, format, tone: a colour }; the
// numbers stand beside as text, those of the moment under the pointer while there is one. also are values of the same
// form that would break the scale: they stand below as text alone.
export function lineChart({ title, lines, also = [], floor = 1 }) {
  const paths = lines.map((line) => s("path", { class: `line tone${line.tone}`, "vector-effect": "non-scaling-stroke" }));
  const cursor = s("path", { class: "cursor", "vector-effect": "non-scaling-stroke" });
  const name = s("title", null, title), desc = s("desc");
  const svg = s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img" }, name, desc,
    s("path", { class: "grid", d: `M0 ${HIGH - 0.5}H${WIDE}M0 ${HIGH / 2}H${WIDE}M0 .5H${WIDE}`, "vector-effect": "non-scaling-stroke" }), paths, cursor);
  const values = lines.map(() => h("span", { class: "num" }, NONE));
  const others = also.map(() => h("span", { class: "num" }, NONE));
  const top = h("span", { class: "axis scale" });
  const when = h("span", { class: "when dim" }, "now");
  const begin = h("span", null, "15 min ago");
  const plot = h("div", { class: "plot" }, svg, top);
  const node = h("figure", { class: "panel chart" },
    h("figcaption", null, h("span", { class: "title" }, title), when),
    h("div", { class: "legend" }, lines.map((line, i) => h("span", { class: `key tone${line.tone}` }, h("span", { class: "label" }, line.label), values[i]))),
    plot,
    h("div", { class: "axis under", "aria-hidden": "true" }, begin, h("span", null, "now")),
    also.length > 0 && h("p", { class: "also" }, also.map((one, i) => h("span", null, `${one.label} `, others[i]))));

  let samples = [], until = 0, span = 900, pointed = null;
  const x = (t) => (WIDE * (t - until + span)) / span;

  function numbers() {
    const at = pointed === null ? samples.at(-1) : nearest(samples, until - span + pointed * span);
    text(when, pointed === null || !at ? "now" : time(at.t));
    lines.forEach((line, i) => text(values[i], at ? show(line, line.of(at)) : NONE));
    also.forEach((one, i) => text(others[i], at ? show(one, one.of(at)) : NONE));
    cursor.setAttribute("d", pointed === null || !at ? "" : `M${x(at.t).toFixed(1)} 0V${HIGH}`);
  }
  plot.addEventListener("pointermove", (e) => {
    const box = plot.getBoundingClientRect();
    pointed = Math.max(0, Math.min(1, (e.clientX - box.left) / box.width));
    numbers();
  });
  for (const gone of ["pointerleave", "pointercancel"]) {
    plot.addEventListener(gone, () => {
      pointed = null;
      numbers();
    });
  }

  function update(all, now) {
    span = SPANS.find((s) => now - (all[0]?.t ?? now) <= s) ?? SPANS.at(-1);
    [samples, until] = [all.filter((sample) => sample.t >= now - span), now];
    text(begin, `${span / 60} min ago`);
    const drawn = lines.map((line) => samples.map((sample) => line.of(sample)));
    const highest = drawn.map((of) => of.reduce((most, v) => (known(v) && v > most ? v : most), 0));
    const scale = nice(Math.max(floor, ...highest));
    drawn.forEach((of, i) => paths[i].setAttribute("d", path(of, samples, x, scale)));
    text(top, show(lines[0], scale).replace(/\.0+(?!\d)/, ""));
    text(desc, lines.map((line, i) => `${line.label}: now ${show(line, drawn[i].at(-1))}, at most ${show(line, highest[i])}`).join("; "));
    numbers();
  }
  return { node, update };
}

const show = (line, v) => (known(v) ? line.format(v) : NONE);

// path joins what is known; where nothing was, the line is broken.
function path(of, samples, x, scale) {
  let d = "", pen = false, before = 0;
  of.forEach((v, i) => {
    if (!known(v)) {
      pen = false;
      return;
    }
    const gap = samples[i].t - before > 30;
    const at = `${x(samples[i].t).toFixed(1)} ${(HIGH - 2 - ((HIGH - 4) * v) / scale).toFixed(1)}`;
    d += pen && !gap ? `L${at}` : `M${at}h.1`;
    [pen, before] = [true, samples[i].t];
  });
  return d;
}

function nearest(samples, t) {
  let best;
  for (const sample of samples) if (!best || Math.abs(sample.t - t) < Math.abs(best.t - t)) best = sample;
  return best;
}

// nice is the next of 1, 2, 5, 10, 20, 50 ...
export function nice(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].find((step) => step * power >= v * 0.999) * power;
}

// histogram draws counts between edges from 0 to 1, and a threshold through them.
export function histogram(title) {
  const wide = 400, high = 120;
  const bars = s("g"), mark = s("path", { class: "mark" }), was = s("path", { class: "was" });
  const desc = s("desc");
  const node = s("svg", { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", class: "histogram" }, s("title", null, title), desc,
    s("path", { class: "grid", d: `M0 ${high - 0.5}H${wide}` }), bars, was, mark);
  return {
    node,
    update({ edges, counts }, threshold, configured) {
      const most = Math.max(1, ...counts);
      bars.replaceChildren(...counts.map((n, i) => {
        const [from, to] = [edges[i], edges[i + 1]];
        const tall = n === 0 ? 0 : Math.max(1.5, ((high - 4) * n) / most);
        return s("rect", {
          class: from >= threshold - 1e-9 ? "bar over" : "bar", x: (from * wide + 1).toFixed(2), width: ((to - from) * wide - 2).toFixed(2),
          y: (high - tall).toFixed(2), height: tall.toFixed(2),
        }, s("title", null, `${from.toFixed(2)} to ${to.toFixed(2)}: ${count(n)}`));
      }));
      mark.setAttribute("d", `M${(threshold * wide).toFixed(1)} 0V${high}`);
      was.setAttribute("d", `M${(configured * wide).toFixed(1)} 0V${high}`);
      text(desc, `${counts.map((n, i) => `${edges[i].toFixed(2)} to ${edges[i + 1].toFixed(2)}: ${n}`).join("; ")}. Threshold ${threshold}.`);
    },
  };
}
