// Workers: each with its load, what it holds and its GPUs, and a button that drains it.

import { send } from "./api.js";
import { empty, h, put, text } from "./dom.js";
import { bytes, count, decimal, known, NONE, percent, plural, since } from "./format.js";
import { blocksOf, meter, shareOf, stateOf, toneOf } from "./fleet.js";
import { byName, fetchWorkers, workers as all } from "./store.js";

const KNOWN_BY = { events: "by its KV events", guessed: "guessed from what it was sent", none: "not known" };

export function workers({ live, later, confirm, say }) {
  const sum = h("p", { class: "sum" });
  const find = h("input", { type: "search", id: "find-worker", autocomplete: "off", spellcheck: "false", oninput: draw });
  const grid = h("div", { class: "cards" });
  const none = empty("No worker. Name some under ", h("code", null, "workers"), " in the configuration, have them found by ", h("code", null, "discovery"), ", or simulate some: ", h("code", null, "simulate: [{name: sim-0}]"), ".");
  none.hidden = true;
  const node = h("div", { class: "view" },
    h("div", { class: "bar-top" }, h("h1", { tabindex: "-1" }, "Workers"), sum, h("label", { class: "find" }, h("span", null, "Find"), find)),
    none, grid);
  const cards = new Map();
  let shown = false;

  async function drain(name) {
    const worker = all.get(name);
    if (!worker) return;
    const undrain = worker.draining;
    const sure = undrain || await confirm({
      title: `Drain ${name}?`,
      text: `It gets no new request. ${worker.requests === 0 ? "None is under way there." : `The ${plural(worker.requests, "request")} under way there may finish.`} It stays so until it is undrained or Kvasir starts again.`,
      yes: "Drain it",
    });
    if (!sure) return;
    try {
      const now = await send("POST", `workers/${encodeURIComponent(name)}/${undrain ? "undrain" : "drain"}`);
      all.set(name, { ...worker, draining: now.draining, requests: now.requests });
      say(now.draining ? `${name} is draining.` : `${name} takes requests again.`);
    } catch (err) {
      say(err.message, true);
    }
    draw();
  }

  function draw() {
    const wanted = find.value.trim().toLowerCase();
    const list = byName().filter((w) => wanted === "" || JSON.stringify([w.name, w.role, w.engine, w.state, w.models, w.source]).toLowerCase().includes(wanted));
    for (const name of cards.keys()) if (!all.has(name)) cards.delete(name);
    for (const w of list) {
      if (!cards.has(w.name)) cards.set(w.name, card(w.name, () => drain(w.name)));
      cards.get(w.name).set(w);
    }
    const names = list.map((w) => w.name).join("\n");
    if (grid.dataset.names !== names) {
      grid.dataset.names = names;
      put(grid, list.map((w) => cards.get(w.name).node));
    }
    none.hidden = all.size > 0;
    const up = [...all.values()].filter((w) => w.takes_requests ?? w.state === "up").length;
    text(sum, all.size === 0 ? "" : `${count(up)} up of ${count(all.size)}${list.length < all.size ? `, ${count(list.length)} shown` : ""}`);
  }
  live.on("workers", () => shown && later(draw));
  return {
    node,
    title: () => "Workers",
    async show() {
      shown = true;
      await fetchWorkers();
      draw();
    },
    hide: () => (shown = false),
  };
}

// card is one worker. What is not known of it is not shown.
function card(name, drain) {
  const pill = h("span", { class: "pill" }), button = h("button", { type: "button", onclick: drain });
  const kind = h("p", { class: "dim kind" }), why = h("p", { class: "why" }), held = meter("KV blocks in use"), heldText = h("span", { class: "num" }), heldBy = h("span", { class: "dim" });
  const big = ["Under way", "Waiting"].map((label) => ({ label, value: h("dd", { class: "num" }) }));
  const rows = h("dl", { class: "facts" }), gpus = h("div", { class: "gpus" });
  const node = h("article", { class: "panel card", "aria-label": name },
    h("header", null, h("h2", null, name), pill, button), kind, why,
    h("dl", { class: "big" }, big.map(({ label, value }) => h("div", null, h("dt", null, label), value)),
      h("div", { class: "grow" }, h("dt", null, "KV blocks held"), h("dd", null, heldText, held.node, heldBy))),
    rows, gpus);
  const fields = new Map();

  function set(w) {
    text(pill, stateOf(w));
    pill.dataset.tone = toneOf(w);
    text(button, w.draining ? "Undrain" : "Drain…");
    button.setAttribute("aria-label", `${w.draining ? "Undrain" : "Drain"} ${w.name}`);
    text(kind, [role(w.role), w.engine || "engine not known", (w.models ?? []).join(", ") || "no model known"].join(" · "));
    const said = [w.why, w.hardware].filter(Boolean).join("; ");
    text(why, said);
    why.hidden = said === "";
    why.dataset.tone = toneOf(w);
    text(big[0].value, count(w.requests));
    text(big[1].value, count(w.waiting));
    text(heldText, blocksOf(w));
    held.set(shareOf(w));
    text(heldBy, KNOWN_BY[w.blocks?.known_by] ?? "");
    const { tokens } = w;
    const values = [
      ["Tokens", tokens && `${count(tokens.in)} in, ${count(tokens.out)} out, ${count(tokens.cached)} cached`],
      ["Overlap won", known(w.overlap_tokens) ? `${count(w.overlap_tokens)} tokens` : undefined],
      ["Of other Kvasirs", w.away > 0 ? `${plural(w.away, "request")} under way` : undefined],
      ["Prompts to compute", known(w.backlog_tokens) ? `${count(w.backlog_tokens)} tokens` : undefined],
      ["Context held", known(w.context_tokens) ? `${count(w.context_tokens)} tokens` : undefined],
      ["Learned pace", known(w.pace) ? `takes ${decimal(w.pace)} × the simulated engine's time` : undefined],
      ["Failures, ejections", known(w.failures) ? `${count(w.failures)}, ${count(w.ejections)}` : undefined],
      ["Found by", w.source],
      [`${w.state.charAt(0).toUpperCase()}${w.state.slice(1)} for`, w.since ? since(w.since) : undefined],
    ].filter(([, value]) => value !== undefined && value !== "");
    const names = values.map(([label]) => label).join("\n");
    if (rows.dataset.names !== names) {
      rows.dataset.names = names;
      fields.clear();
      put(rows, values.map(([label]) => {
        fields.set(label, h("dd", { class: "num" }));
        return h("div", null, h("dt", null, label), fields.get(label));
      }));
    }
    for (const [label, value] of values) text(fields.get(label), value);
    const told = JSON.stringify(w.gpus ?? []);
    if (gpus.dataset.told !== told) {
      gpus.dataset.told = told;
      put(gpus, (w.gpus ?? []).map(gpu));
    }
  }
  return { node, set };
}

const role = (of) => ({ both: "prefill and decode", prefill: "prefill", decode: "decode" })[of] ?? of;

function gpu(g) {
  const used = meter("utilisation"), memory = meter("memory in use");
  used.set(g.stale ? undefined : g.utilization);
  memory.set(known(g.memory_used) && g.memory_total > 0 ? g.memory_used / g.memory_total : undefined);
  const wrong = [
    ...(g.throttled ?? []).map((t) => `throttled: ${t}`), ...(g.errors ?? []), ...(g.others ?? []).map((o) => `also used by worker ${o}`),
    ...(g.stale ? ["telemetry is stale"] : []),
  ];
  return h("section", { class: "gpu" },
    h("h3", null, `GPU ${g.index} `, h("span", { class: "dim", title: g.uuid }, g.name)),
    h("p", null, h("span", { class: "label" }, "busy"), used.node, h("span", { class: "num" }, g.stale ? NONE : percent(g.utilization))),
    h("p", null, h("span", { class: "label" }, "memory"), memory.node, h("span", { class: "num" }, known(g.memory_used) ? `${bytes(g.memory_used)} of ${bytes(g.memory_total)}` : NONE)),
    h("p", { class: "dim num" }, [known(g.temperature_c) ? `${decimal(g.temperature_c)} °C` : "", known(g.power_w) ? `${decimal(g.power_w)} W` : ""].filter(Boolean).join(" · ")),
    wrong.length > 0 && h("ul", { class: "wrong" }, wrong.map((w) => h("li", null, w))));
}
