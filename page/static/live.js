// The one event stream of the page: opened again when it is lost, closed while nobody looks.

import { ask, problemOf, Problem } from "./api.js";
import { events } from "./events.js";

const SILENT = 10_000; // ms; there is an event each second
const SLOWEST = 15_000; // ms between two tries

const heard = new Map(); // event -> functions
let stopped = null; // aborts the stream under way
let failures = 0;
let retry = 0; // the timer of the next try

// on calls f with the data of each event of this name. Besides those of the stream: "open" (it is
// there, again or for the first time) and "lost" ({ why, in_ms }).
export function on(name, f) {
  if (!heard.has(name)) heard.set(name, new Set());
  heard.get(name).add(f);
}

function tell(name, data) {
  for (const f of heard.get(name) ?? []) f(data);
}

// start opens the stream now, and keeps it while the page is seen.
export function start() {
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
}

export function open() {
  close();
  const mine = new AbortController();
  stopped = mine;
  run(mine);
}

function close() {
  clearTimeout(retry);
  stopped?.abort();
  stopped = null;
}

async function run(mine) {
  let why = "";
  let silence = 0;
  const listen = () => {
    clearTimeout(silence);
    silence = setTimeout(() => mine.abort(), SILENT);
  };
  try {
    const reply = await ask("api/live", { signal: mine.signal, headers: { Accept: "text/event-stream" } });
    if (!reply.ok) throw await problemOf(reply);
    if (stopped !== mine) return;
    failures = 0;
    tell("open");
    listen();
    for await (const { event, data } of events(reply)) {
      if (stopped !== mine) return;
      listen();
      if (event !== "ping") tell(event, JSON.parse(data));
    }
    why = "It ended the stream.";
  } catch (err) {
    why = err instanceof Problem ? err.message : mine.signal.aborted ? "It says nothing any more." : "It cannot be reached.";
  } finally {
    clearTimeout(silence);
  }
  if (stopped !== mine) return; // closed, or another one is open
  stopped = null;
  const wait = Math.min(SLOWEST, 500 * 2 ** failures++) * (0.75 + Math.random() / 2);
  tell("lost", { why, in_ms: wait });
  retry = setTimeout(open, wait);
}
