// Requests: a live list of the newest, without any of their text.

import { get, query } from "./api.js";
import { attr, empty, h, put, text } from "./dom.js";
import { count, known, ms, plural, time } from "./format.js";

const MOST = 200; // rows
const OFTEN = 1000; // ms between two draws of what comes: 200 rows are laid out anew each time
const MOST_KEPT = 1000; // requests, by Kvasir
const OUTCOMES = { ok: "answered", cache: "from cache", blocked: "blocked", error: "failed", cancelled: "client left" };
export const TONES = { ok: "ok", cache: "info", blocked: "warn", error: "bad", cancelled: "dim" };
export const outcomeOf = (r) => OUTCOMES[r.outcome] ?? r.outcome;
export const workersOf = (r) => (r.prefill && r.worker ? `${r.prefill} → ${r.worker}` : r.worker || r.prefill || "–");

const COLUMNS = [
  { head: "Began", of: (r) => time(r.time), link: true, className: "time" },
  { head: "Outcome", of: outcomeOf, tone: true, className: "outcome" },
  { head: "Model", of: (r) => r.model || r.asked || "–", className: "model" },
  { head: "Worker", of: workersOf, className: "worker" },
  { head: "Key", of: (r) => r.key || "–", className: "who" },
  { head: "Decision", of: (r) => r.decision || r.category || "–", className: "decision" },
  { head: "First byte", of: (r) => (r.first_byte_ms > 0 ? ms(r.first_byte_ms) : "–"), className: "n byte" },
  { head: "Total", of: (r) => ms(r.total_ms), className: "n total" },
  { head: "Prompt", of: (r) => (known(r.prompt_tokens) ? count(r.prompt_tokens) : "–"), className: "n prompt" },
  { head: "of it cached", of: (r) => (known(r.cached_tokens) ? count(r.cached_tokens) : "–"), className: "n cached" },
  { head: "Answer", of: (r) => (known(r.completion_tokens) ? count(r.completion_tokens) : "–"), className: "n answer" },
];

export function requests({ live, later }) {
  const filters = {};
  let list = [], shown = false, before = 0, waiting = [], skipped = 0, kept = 0, loads = 0;

  const choices = ["model", "worker", "key", "outcome"].map((name) => {
    const select = h("select", { id: `by-${name}`, onchange: () => { filters[name] = select.value; load(0); } }, h("option", { value: "" }, "all"));
    if (name === "outcome") for (const [value, label] of Object.entries(OUTCOMES)) select.append(h("option", { value }, label));
    return { name, select, seen: new Set(), node: h("label", null, h("span", null, name.charAt(0).toUpperCase() + name.slice(1)), select) };
  });
  const held = h("button", { type: "button", "aria-pressed": "false", onclick: () => { hold = !hold; attr(held, "aria-pressed", String(hold)); catchUp(); } }, "Hold");
  let hold = false;
  const sum = h("p", { class: "sum" });
  const rows = Array.from({ length: MOST }, row);
  const body = h("tbody", null);
  const none = empty();
  const older = h("button", { type: "button", onclick: () => load(list.at(-1)?.seq ?? 0) }, "Older");
  const newest = h("button", { type: "button", onclick: () => load(0) }, "Newest");
  const scroll = h("div", { class: "scroll", role: "region", "aria-label": "Requests", tabindex: "0" },
    h("table", { class: "fixed list" }, h("caption", { class: "unseen" }, "Requests, newest first"),
      h("thead", null, h("tr", null, COLUMNS.map((c) => h("th", { scope: "col", class: c.className }, c.head)))), body));
  const node = h("div", { class: "view" },
    h("div", { class: "bar-top" }, h("h1", { tabindex: "-1" }, "Requests"), sum),
    h("div", { class: "filters" }, choices.map((c) => c.node), held),
    scroll, none, h("p", { class: "buttons" }, newest, older));

  // While the pointer or the focus is on a row, it keeps its place.
  const touched = () => body.matches(":hover") || body.contains(document.activeElement);
  scroll.addEventListener("pointerleave", () => later(catchUp));
  scroll.addEventListener("focusout", () => later(catchUp));
  body.addEventListener("pointerover", (e) => { // what was cut off can be read
    const cell = e.target.closest("td");
    if (cell) cell.title = cell.textContent;
  });

  const matches = (r) => Object.entries(filters).every(([name, value]) => value === "" || r[name] === value || (name === "worker" && r.prefill === value) || (name === "model" && r.asked === value));

  function offer(r) {
    for (const { name, select, seen } of choices) {
      for (const value of name === "worker" ? [r.worker, r.prefill] : [r[name]]) {
        if (name === "outcome" || !value || seen.has(value) || seen.size >= 200) continue;
        seen.add(value);
        select.append(h("option", { value }, value));
      }
    }
  }

  function row() {
    const link = h("a");
    const cells = COLUMNS.map((c) => h("td", { class: c.className }, c.link && link));
    const pill = h("span", { class: "dot" });
    const label = h("span");
    cells[1].append(pill, label);
    return {
      node: h("tr", null, cells),
      set(r) {
        attr(link, "href", `#requests/${r.seq}`);
        pill.dataset.tone = TONES[r.outcome] ?? "dim";
        COLUMNS.forEach((c, i) => text(c.link ? link : c.tone ? label : cells[i], c.of(r)));
      },
    };
  }

  function catchUp() {
    if (hold || before || touched()) return draw();
    for (const r of waiting) offer(r);
    list = [...waiting.filter(matches).reverse(), ...list].slice(0, MOST);
    waiting = [];
    draw();
  }

  function draw() {
    if (!shown) return;
    list.forEach((r, i) => {
      rows[i].set(r);
      if (!rows[i].node.isConnected) body.append(rows[i].node);
    });
    for (let i = list.length; i < MOST && rows[i].node.isConnected; i++) rows[i].node.remove();
    scroll.hidden = list.length === 0;
    none.hidden = list.length > 0;
    older.hidden = list.length < MOST;
    newest.hidden = before === 0;
    const filtered = Object.values(filters).some(Boolean);
    const fresh = waiting.filter(matches).length;
    text(sum, before ? "Older ones" : [
      filtered ? `${plural(list.length, "request")} shown` : `the last ${plural(Math.max(kept, list.length), "request")} kept`,
      fresh > 0 ? `${count(fresh)}${waiting.length >= 1000 ? "+" : ""} new` : "",
      skipped > 0 ? `${count(skipped)} left out: more than 50 a second` : "",
    ].filter(Boolean).join(" · "));
    if (list.length === 0) {
      put(none, filtered ? "None of those kept is like that. " : "No request yet: send one by ", filtered ? h("a", { href: "#requests", onclick: clear }, "Show all") : h("a", { href: "#try" }, "Try it"), filtered ? "" : ", or point an OpenAI client at this Kvasir's API.");
    }
  }

  function clear() {
    for (const { name, select } of choices) [filters[name], select.value] = ["", ""];
    load(0);
  }

  async function load(from) {
    const mine = ++loads;
    const got = await get(`api/requests${query({ ...filters, limit: MOST, before: from || undefined })}`);
    if (mine !== loads) return;
    [list, before, kept, skipped] = [got.requests.slice(0, MOST), from, got.kept, 0];
    waiting = waiting.filter((r) => list.length === 0 || r.seq > list[0].seq);
    for (const r of list) offer(r);
    draw();
    if (from) scroll.scrollIntoView({ block: "nearest" });
  }

  live.on("request", (r) => {
    if (!shown) return;
    kept = Math.min(kept + 1, MOST_KEPT);
    waiting.push(r);
    if (waiting.length > 1000) waiting.shift();
    later(catchUp, OFTEN);
  });
  live.on("skipped", ({ count: n }) => {
    if (!shown) return;
    [skipped, kept] = [skipped + n, Math.min(kept + n, MOST_KEPT)];
    later(catchUp, OFTEN);
  });
  live.on("open", () => shown && !before && load(0).catch(() => {}));

  return {
    node,
    title: () => "Requests",
    async show() {
      shown = true;
      waiting = [];
      draw();
      await load(0);
    },
    hide: () => (shown = false),
  };
}
