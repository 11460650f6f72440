// The page: which view is shown, its dialogs, and what it says of its connection.

import { askAgain, get, keysComeFrom } from "./api.js";
import * as live from "./live.js";
import { attr, h, put, text } from "./dom.js";
import { stateOf } from "./store.js";
import { overview } from "./overview.js";
import { workers } from "./workers.js";
import { requests } from "./requests.js";
import { request } from "./request.js";
import { tryIt } from "./try.js";
import { decisions } from "./decisions.js";
import { cache } from "./cache.js";
import { configuration } from "./configuration.js";

const $ = (id) => document.getElementById(id);
const makers = { overview, workers, requests, request, try: tryIt, decisions, cache, configuration };
const made = new Map();
let current = null, began = false;

// later draws once before the next frame, and no more often than every so many milliseconds, whatever
// comes.
const drawn = new Map(), due = new Map();
let frame = 0;
function later(draw, every = 250) {
  due.set(draw, every);
  frame ||= requestAnimationFrame(flush);
}
function flush(now) {
  frame = 0;
  for (const [draw, every] of [...due]) {
    if (now - (drawn.get(draw) ?? -Infinity) < every) continue;
    drawn.set(draw, now);
    due.delete(draw);
    draw();
  }
  if (due.size > 0) frame = requestAnimationFrame(flush);
}

// say tells what happened, to the eye and to the ear, and takes it back after a while.
let quiet = 0;
function say(what, bad = false) {
  const said = $("said");
  said.className = bad ? "said bad" : "said";
  text(said, what);
  clearTimeout(quiet);
  quiet = setTimeout(() => {
    said.className = "unseen";
    text(said, "");
  }, bad ? 12_000 : 5_000);
}

// dialogs

function confirm({ title, text: what, yes, danger }) {
  const dialog = $("confirm");
  text($("confirm-title"), title);
  text($("confirm-text"), what);
  text($("confirm-yes"), yes);
  $("confirm-yes").className = danger ? "danger" : "main";
  return new Promise((done) => {
    let sure = false;
    $("confirm-yes").onclick = () => { sure = true; dialog.close(); };
    $("confirm-no").onclick = () => dialog.close();
    dialog.onclose = () => done(sure);
    dialog.showModal();
  });
}

keysComeFrom((wrong) => {
  const dialog = $("key"), input = $("key-value");
  if (wrong) put($("key-why"), "That is not the key of this admin listener. Try another one.");
  return new Promise((done) => {
    let given = null;
    $("key-form").onsubmit = (e) => {
      e.preventDefault();
      given = input.value.trim();
      dialog.close();
    };
    $("key-cancel").onclick = () => dialog.close();
    dialog.onclose = () => {
      input.value = "";
      done(given);
    };
    dialog.showModal();
  });
});

// views

function where() {
  const [name, ...rest] = location.hash.replace(/^#/, "").split("/");
  let arg = rest.join("/");
  try {
    arg = decodeURIComponent(arg);
  } catch {
    // As it stands.
  }
  if (name === "requests" && arg) return { tab: name, view: "request", arg };
  return Object.hasOwn(makers, name) && name !== "request" ? { tab: name, view: name, arg } : { tab: "overview", view: "overview", arg: "" };
}

async function go() {
  const { tab, view: name, arg } = where();
  if (!made.has(name)) made.set(name, makers[name]({ live, later, confirm, say }));
  const view = made.get(name);
  if (current !== view) {
    current?.hide?.();
    current = view;
    put($("main"), view.node);
    window.scrollTo(0, 0);
  }
  for (const link of $("tabs").children) {
    if (link.hash === `#${tab}`) {
      attr(link, "aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  document.title = `${view.title(arg)} · Kvasir`;
  try {
    await view.show(arg);
  } catch (err) {
    if (current === view) say(err.name === "TypeError" ? "Kvasir cannot be reached." : err.message, true);
  }
  if (began && current === view && document.activeElement === document.body) view.node.querySelector("h1")?.focus({ preventScroll: true });
  began = true;
}

$("tabs").addEventListener("keydown", (e) => {
  const links = [...$("tabs").children], at = links.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: links.length - 1 }[e.key];
  if (at < 0 || to === undefined || e.altKey || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  links[(to + links.length) % links.length].focus();
});
$("skip").addEventListener("click", (e) => {
  e.preventDefault();
  $("main").focus();
});

// colours

const THEMES = { "": "as the system has them", dark: "dark", light: "light" };
function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  attr($("theme"), "aria-label", `Colours: ${THEMES[chosen]}`);
  attr($("theme"), "title", `Colours: ${THEMES[chosen]}`);
}
$("theme").addEventListener("click", () => {
  const all = Object.keys(THEMES);
  const next = all[(all.indexOf(document.documentElement.dataset.theme ?? "") + 1) % all.length];
  theme(next);
  say(`Colours: ${THEMES[next]}`);
  try {
    localStorage.setItem("kvasir-theme", next);
  } catch {
    // It holds until the page is loaded again.
  }
});
theme(document.documentElement.dataset.theme ?? "");

// the connection

let lostSince = 0;
live.on("open", () => {
  $("lost").hidden = true;
  get("api/overview").then((o) => text($("version"), o.version), () => {}); // a view that fails says so itself
    if (lostSince) say("Connected again.");
  lostSince = 0;
});
live.on("lost", ({ why, in_ms: wait }) => {
  if (!lostSince) say("The connection to Kvasir is lost.", true);
  lostSince ||= Date.now();
  $("lost").hidden = false;
  text($("lost-text"), `Not connected: what is shown may be old. ${why} Trying again in ${Math.ceil(wait / 1000)} s.`);
  pill("not connected", "bad");
});
live.on("overview", (o) => {
  const { word, tone } = stateOf(o);
  pill(word, tone);
});
$("again").addEventListener("click", () => {
  askAgain();
  live.open();
});

function pill(what, tone) {
  text($("state"), what);
  $("state").dataset.tone = tone;
}

addEventListener("hashchange", () => {
  $("confirm").close(); // what it asks is about the view that is left
  go();
});
live.start();
go();
