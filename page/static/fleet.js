// The workers in few words: a pill for a state, bars for what is used, a table for the overview.

import { h, put, table, text, width } from "./dom.js";
import { count, known, percent } from "./format.js";
import { byName } from "./store.js";

// toneOf is the colour of a worker's state.
export function toneOf(worker) {
  if (worker.state === "up") return worker.draining ? "warn" : "ok";
  return ["unknown", "busy", "draining"].includes(worker.state) ? "warn" : "bad";
}

export const stateOf = (worker) => (!worker.draining || worker.state === "draining" ? worker.state : worker.state === "up" ? "draining" : `${worker.state}, draining`);

// meter is a bar with its share in words beside it.
export function meter(label) {
  const bar = h("span", { class: "bar" });
  const node = h("span", { class: "meter", "aria-hidden": "true", title: label }, bar);
  return {
    node,
    set(share, tone = "") {
      node.hidden = !known(share);
      width(bar, share);
      bar.className = `bar ${tone}`;
    },
  };
}

export const blocksOf = ({ blocks }) => (!blocks || blocks.known_by === "none" ? "–" : blocks.of > 0 ? `${count(blocks.held)} of ${count(blocks.of)}` : count(blocks.held));

export const shareOf = ({ blocks }) => (blocks && blocks.known_by !== "none" && blocks.of > 0 ? blocks.held / blocks.of : undefined);

// fleet is the overview's table of workers, a row each.
export function fleet() {
  const rows = new Map();
  const body = h("tbody");
  const more = h("p", { class: "dim", hidden: true });
  const scroll = table({
    caption: "Workers", className: "fixed fleet", rows: [],
    heads: ["Worker", "Role", "State", ["Under way", "n"], ["Waiting", "n"], ["KV blocks held", "n"], ["Used", "wide"]],
  });
  scroll.querySelector("tbody").replaceWith(body);
  const node = h("section", { class: "panel" }, h("h2", null, h("a", { href: "#workers" }, "Workers")), scroll, more);

  function row() {
    const cells = ["", "", "", "n", "n", "n", "wide"].map((c) => h("td", { class: c || null }));
    const pill = h("span", { class: "pill" }), used = meter("KV blocks in use"), share = h("span", { class: "num dim" });
    cells[2].append(pill);
    cells[6].append(used.node, " ", share);
    return {
      node: h("tr", null, cells),
      set(w) {
        text(cells[0], w.name);
        text(cells[1], w.role);
        text(pill, stateOf(w));
        pill.dataset.tone = toneOf(w);
        text(cells[3], count(w.requests));
        text(cells[4], count(w.waiting));
        text(cells[5], blocksOf(w));
        used.set(shareOf(w));
        text(share, percent(shareOf(w)));
      },
    };
  }
  return {
    node,
    draw() {
      const all = byName(), shown = all.slice(0, 20);
      for (const name of rows.keys()) if (!shown.some((w) => w.name === name)) rows.delete(name);
      const names = shown.map((w) => w.name).join("\n");
      for (const w of shown) {
        if (!rows.has(w.name)) rows.set(w.name, row());
        rows.get(w.name).set(w);
      }
      if (body.dataset.names !== names) {
        body.dataset.names = names;
        put(body, shown.map((w) => rows.get(w.name).node));
      }
      more.hidden = all.length <= 20;
      text(more, `${all.length - 20} more under Workers.`);
    },
  };
}
