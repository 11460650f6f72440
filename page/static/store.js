// What the stream has said so far: the workers, and the newest requests.

import * as live from "./live.js";
import { get } from "./api.js";

export const workers = new Map(); // by name

// byName lists the workers, those that are not up first.
export function byName() {
  return [...workers.values()].sort((a, b) => (a.state === "up") - (b.state === "up") || a.name.localeCompare(b.name, "en", { numeric: true }));
}

live.on("open", () => workers.clear()); // the stream begins with all
live.on("workers", ({ workers: changed, gone }) => {
  for (const worker of changed) workers.set(worker.name, worker);
  for (const name of gone ?? []) workers.delete(name);
});

// fetchWorkers is for a view that is shown before the stream has said anything.
export async function fetchWorkers() {
  const all = (await get("api/workers")).workers;
  workers.clear();
  for (const worker of all) workers.set(worker.name, worker);
}

// stateOf is a word and a colour for what an overview says of the whole.
export function stateOf({ status, reasons }) {
  if (status === "ready" && reasons.length > 0) return { word: "degraded", tone: "warn" };
  if (status === "ready") return { word: "ready", tone: "ok" };
  return { word: status.replaceAll("_", " "), tone: status === "degraded" ? "warn" : "bad" };
}
