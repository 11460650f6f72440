// An admin listener that answers in the shapes of docs/page.md with data that no simulated worker
// has: GPUs that throttle, names that look like HTML, 50 requests a second, an admin key.
//
//   const admin = await fixture({ key: "secret" });   admin.url, admin.close(), admin.watchers() of its stream
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const STATIC = fileURLToPath(new URL("../../page/static/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
export const HOSTILE = `<img src=x onerror="document.title='owned'">`;

// A small generator, so that pictures and checks see the same numbers.
function numbers(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const rnd = numbers(7);
const some = (list) => list[Math.floor(rnd() * list.length)];

function sample(t) {
  const wave = 1 + 0.4 * Math.sin(t / 120) + 0.2 * (rnd() - 0.5);
  const asked = 18 * wave;
  return {
    t, requests: asked, errors: rnd() < 0.05 ? 0.4 : 0, blocked: rnd() < 0.2 ? 0.6 : 0, cache_hits: asked * 0.2, tokens_in: asked * 900, tokens_out: asked * 140, tokens_cached: asked * 400,
    queue: rnd() < 0.1 ? 3 : 0, in_flight: Math.round(30 * wave),
    ttfb_ms: { p50: 60 * wave, p95: 170 * wave, p99: 320 * wave }, itl_ms: { p50: 11 * wave, p95: 18 * wave, p99: 25 * wave },
    whole_ms: { p50: 900 * wave, p95: 2100 * wave, p99: 3400 * wave }, hit_ms: { p50: 0.3, p95: 0.5, p99: 1.1 },
  };
}

const WORKERS = [
  { name: "prefill-0", role: "prefill", gpus: [] },
  { name: "decode-0", role: "decode", gpus: [{ index: 0, uuid: "GPU-1", name: "NVIDIA H100 80GB HBM3", utilization: 0.93, memory_used: 71e9, memory_total: 85e9, temperature_c: 81, power_w: 688, throttled: ["heat"], errors: [], others: [], stale: false }] },
  { name: "decode-1", role: "decode", state: "down", why: "connect: connection refused", gpus: [{ index: 1, uuid: "GPU-2", name: "NVIDIA H100 80GB HBM3", memory_used: 71e9, memory_total: 85e9, throttled: [], errors: ["an uncorrected ECC error"], others: ["python3 (4711)"], stale: true }] },
  { name: HOSTILE, role: "both", engine: "", gpus: [] },
].map((w) => ({
  engine: "vllm", models: ["qwen3-32b"], source: "config", state: "up", why: "", draining: false, since: new Date(Date.now() - 3.6e6).toISOString(), requests: 12, waiting: 1, context_tokens: 48_211, backlog_tokens: 2048,
  blocks: { held: 11_204, of: 16_384, known_by: "events" }, overlap_tokens: 1_842_113, tokens: { in: 8_211_004, out: 1_022_113, cached: 3_911_233 }, pace: 1.08, ejections: 0, failures: 2, ...w,
}));

function short(seq) {
  const outcome = some(["ok", "ok", "ok", "ok", "ok", "cache", "blocked", "error", "cancelled"]);
  const first = 20 + 200 * rnd();
  return {
    seq, id: `req-${seq}`, time: new Date().toISOString(), route: "/v1/chat/completions", asked: "auto", model: "qwen3-32b", worker: outcome === "cache" || outcome === "blocked" ? "" : some(["decode-0", HOSTILE]),
    ...(rnd() < 0.5 ? { prefill: "prefill-0" } : {}), key: some(["alice", "bob", HOSTILE]), status: outcome === "error" ? 502 : 200, outcome, end: outcome === "cancelled" ? "client_gone" : "ok", stream: true,
    first_byte_ms: first, total_ms: first + 1500 * rnd(), overhead_ms: 0.4, prompt_tokens: 1200, completion_tokens: 130, cached_tokens: 640, category: "math", decision: some(["maths", "code", "quick"]),
    cache: outcome === "cache" ? "hit" : "miss", retries: 0,
  };
}

function whole(r) {
  const parts = (k) => ({ ttft: 38 * k, work: 12 * k, copied: -6 * k, load: 3 * k, evict: 9 * k, fill: 1 * k });
  return {
    ...r, trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
    steps: [
      { name: "read", begin_ms: 0, end_ms: 0.1 }, { name: "identify", begin_ms: 0.1, end_ms: 0.12 }, { name: "judge", begin_ms: 0.12, end_ms: 0.9 }, { name: "reuse", begin_ms: 0.9, end_ms: 1.2 },
      { name: "locate", begin_ms: 1.2, end_ms: 1.9 }, { name: "place", begin_ms: 1.9, end_ms: 2 }, { name: "prefill", begin_ms: 2, end_ms: r.first_byte_ms * 0.7, worker: "prefill-0", status: 200 },
      { name: "decode", begin_ms: r.first_byte_ms * 0.7, end_ms: r.first_byte_ms, worker: HOSTILE, status: 200, note: HOSTILE }, { name: "stream", begin_ms: r.first_byte_ms, end_ms: r.total_ms },
    ],
    placement: {
      policy: "predict", why: "policy", tokens: 1200, exact: true, overlap_blocks: 40, prompt_blocks: 75, block_tokens: 16, cost: 57,
      candidates: [1, 1.4, 2.2].map((k, i) => ({
        worker: ["decode-0", "decode-1", HOSTILE][i], leg: "whole", chosen: i === 0, cost: 57 * k, parts: parts(k), overlap_blocks: 40 - 15 * i, of: 75, requests: 4 + i, decoding: 3, backlog_tokens: 800 * i, context_tokens: 9000,
        predicted_first_byte_ms: 38 * k, aside: i === 2, ...(i === 2 ? { slow: 1.3 } : {}),
      })), left_out: 2,
    },
    signals: {
      category: { label: "math", confidence: 0.91, threshold: 0.6 }, jailbreak: { score: 0.04, threshold: 0.7, type: "", action: "annotate" }, pii: { types: ["PERSON"], denied: [], threshold: 0.7, action: "block" },
      language: "en", complexity: "hard", matched: [{ kind: "keyword", name: HOSTILE }], hidden_characters: 2,
    },
    decision: { name: "maths", reasoning: "on", injected: true },
    cache_detail: { result: r.cache, ...(r.cache === "hit" ? { entry: "00c0ffee", similarity: 0.97, age_ms: 61_000 } : { why: "no entry of this scope" }) },
  };
}

const ANSWERS = {
  "api/overview": () => ({
    version: "v1.2.3", started: new Date(Date.now() - 9.1e6).toISOString(), now: new Date().toISOString(), status: "degraded", ready: true, reasons: ["worker decode-1 is down: connect: connection refused", "the cache's store is slow"],
    workers_up: 3, workers_all: 4, in_flight: 31, queued: 2, last: sample(Date.now() / 1000),
    series: { step_s: 5, until: new Date().toISOString(), samples: Array.from({ length: 180 }, (_, i) => sample(Math.floor(Date.now() / 5000) * 5 - 5 * (180 - i))) },
  }),
  "api/workers": () => ({ workers: WORKERS }),
  "api/decisions": (url) => {
    const asked = Number(url.searchParams.get("threshold") ?? 0.6);
    const n = Math.round(Math.abs(asked - 0.6) * 400);
    return {
      of: 1000, threshold: 0.6, asked_threshold: asked, decisions: [["maths", 410], ["code", 221], ["quick", 60]].map(([name, count]) => ({ name, count, model: "qwen3-32b" })),
      categories: ["math", "computer science", "health", "law", "other"].map((name, i) => ({ name, count: 400 - 80 * i })),
      confidence: { edges: Array.from({ length: 21 }, (_, i) => i / 20), counts: Array.from({ length: 20 }, (_, i) => Math.round(3 + i * i * 0.4)) },
      would_change: { count: n, examples: Array.from({ length: Math.min(20, n) }, (_, i) => ({ seq: i, id: `req-${i}`, category: "law", confidence: 0.55, decision_now: "" })) },
    };
  },
  "api/cache": () => ({ store: "embedded", entries: 1204, bytes: 8.1e6, hits: 220, misses: 700, bypassed: 12, recent: Array.from({ length: 12 }, (_, i) => ({ entry: `00c0ffee${i}`, similarity: 0.97, age_ms: 61_000 * (i + 1), model: "qwen3-32b", time: new Date().toISOString(), request_id: `req-${i}` })) }),
  "api/config": () => ({
    file: "/etc/kvasir/config.yaml",
    values: [["server.listen", "0.0.0.0:8080", "file", "config.yaml:3"], ["server.admin", "127.0.0.1:9090", "default"], ["log.level", "debug", "environment"], ["routing.policy", "kv", "flag"], ["cache.milvus.token", "hidden", "file", "config.yaml:31"], ["classify.pii.allow", ["PERSON", "GPE"], "default"]]
      .map(([key, value, from, at]) => ({ key, value, from, ...(at ? { at } : {}), secret: value === "hidden" })),
    reloads: [{ time: new Date().toISOString(), taken: false, error: `config.yaml:3:9: routing.policy: ${HOSTILE}`, restart: [] }, { time: new Date().toISOString(), taken: true, restart: ["server.listen"] }],
  }),
};

export async function fixture({ key = "", perSecond = 5, port = 0 } = {}) {
  const kept = Array.from({ length: 400 }, (_, i) => short(i + 1)).reverse();
  const watchers = new Set();
  let seq = kept.length;
  const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const ticks = setInterval(() => {
    if (watchers.size === 0) return;
    let said = event("overview", { ...sample(Math.floor(Date.now() / 1000)), status: "degraded", reasons: ANSWERS["api/overview"]().reasons, workers_up: 3, workers_all: 4, in_flight: 31, queued: 2 });
    WORKERS[0].requests = Math.round(10 + 10 * rnd());
    said += event("workers", { workers: [WORKERS[0]], gone: [] });
    for (const w of watchers) w.write(said);
  }, 1000);
  const load = setInterval(() => {
    const r = short(++seq);
    kept.unshift(r);
    kept.length = Math.min(kept.length, 1000);
    for (const w of watchers) w.write(event("request", r));
  }, 1000 / perSecond);

  const server = createServer(async (req, res) => {
    const url = new URL(req.url, "http://admin");
    const json = (body, status = 200) => res.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    const path = decodeURIComponent(url.pathname.slice(1));
    if (path === "" || path.startsWith("page/")) {
      const file = normalize(path === "" ? "index.html" : path.slice(5));
      try {
        const data = await readFile(join(STATIC, file));
        res.writeHead(200, { "Content-Type": TYPES[extname(file)], "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache" }).end(data);
      } catch {
        json({ error: { message: `there is no ${path}` } }, 404);
      }
      return;
    }
    if (key && req.headers.authorization !== `Bearer ${key}`) return json({ error: { message: "the admin key is missing or wrong", code: "invalid_api_key" } }, 401);
    if (req.method !== "GET" && req.headers["x-kvasir-admin"] !== "1") return json({ error: { message: "X-Kvasir-Admin: 1 is missing" } }, 403);
    if (path === "api/live") {
      res.writeHead(200, { "Content-Type": "text/event-stream" });
      res.write(event("workers", { workers: WORKERS, gone: [] }));
      watchers.add(res);
      res.on("close", () => watchers.delete(res));
      return;
    }
    const drained = path.match(/^workers\/(.+)\/(drain|undrain)$/);
    if (drained) {
      const worker = WORKERS.find((w) => w.name === drained[1]);
      worker.draining = drained[2] === "drain";
      return json({ worker: worker.name, draining: worker.draining, requests: worker.requests });
    }
    if (path === "api/requests") {
      const before = Number(url.searchParams.get("before") ?? Infinity), outcome = url.searchParams.get("outcome");
      return json({ requests: kept.filter((r) => r.seq < before && (!outcome || r.outcome === outcome)).slice(0, 200), kept: kept.length, dropped: 0 });
    }
    if (path.startsWith("api/requests/")) {
      const r = kept.find((one) => one.id === path.slice(13) || String(one.seq) === path.slice(13));
      return r ? json(whole(r)) : json({ error: { message: "no such request" } }, 404);
    }
    if (path.startsWith("cache/")) return req.method === "DELETE" ? json({ deleted: 1 }) : json({ id: path.slice(6), scope: "1f2e", tenant: "", model: "qwen3-32b", age_s: 61, expires_in_s: 3539, question: HOSTILE, answer_preview: HOSTILE, answer_bytes: 45 });
    if (path === "api/explain") return json({ model: "qwen3-32b", ...(({ signals, decision, placement }) => ({ signals, decision, placement }))(whole(kept[0])) });
    if (path.startsWith("api/try/")) {
      res.writeHead(200, { "Content-Type": "text/event-stream", "X-Request-Id": kept[3].id, "x-kvasir-worker": "decode-0", "x-vsr-selected-decision": "maths" });
      for (const word of ["The ", "integral ", "is ", "9. ", HOSTILE]) res.write(`data: ${JSON.stringify({ choices: [{ delta: { content: word } }] })}\n\n`);
      return res.end("data: [DONE]\n\n");
    }
    if (path === "reload") return json({ error: { message: "The new configuration was not taken, the old one stays", code: "config_invalid" } }, 422);
    return ANSWERS[path] ? json(ANSWERS[path](url)) : json({ error: { message: `there is no ${path}` } }, 404);
  });
  await new Promise((ready) => server.listen(port, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    watchers: () => watchers.size,
    close: () => {
      clearInterval(ticks);
      clearInterval(load);
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await fixture({ port: Number(process.argv[2] ?? 0), key: process.argv[3] ?? "" })).url);
