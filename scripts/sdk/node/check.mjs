// Checks an OpenAI server with the official OpenAI SDK for Node, unmodified.
//
//   node check.mjs [CHECK...]        (default: all; one line `ok|SKIP|FAIL NAME` each, exit 1 on a FAIL)
//
// Environment: as in ../python/check.py, which is the same table in Python.
import assert from "node:assert/strict";
import OpenAI from "openai";

const env = process.env;
const MODEL = env.MODEL || "sim";
const WORKERS = (env.WORKER_URL || "").split(",").filter(Boolean).map((u) => u.replace(/\/+$/, ""));
const OPTIONS = {
  baseURL: env.KVASIR_BASE_URL || "http://127.0.0.1:8080/v1",
  apiKey: env.API_KEY || "none",
  timeout: 60_000,
};

const client = new OpenAI({ maxRetries: 0, ...OPTIONS });
const HELLO = [{ role: "user", content: "Name three colours." }];
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Rome"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};
// Temperature 0 and two cities: a model of random weights, too, comes to the end of its JSON.
const FORCED = {
  max_tokens: 64,
  temperature: 0,
  tools: [TOOL],
  tool_choice: { type: "function", function: { name: "get_weather" } },
};
// Many seconds of work for a worker: time enough to leave in the middle.
const LONG = { model: MODEL, messages: HELLO, max_tokens: 6000, ignore_eos: true };

class Skip extends Error {}

function need(condition, why) {
  if (!condition) throw new Skip(why);
}

function fault(kind) {
  need(env.FAULTS === "1", "needs a worker with faults");
  return { headers: { "x-sim-fault": kind } };
}

// running is how many requests the workers are working on, by their own count.
async function running() {
  let total = 0;
  for (const url of WORKERS) {
    const text = await (await fetch(url + "/metrics", { signal: AbortSignal.timeout(5000) })).text();
    for (const line of text.split("\n")) {
      if (line.startsWith("vllm:num_requests_running")) total += Number(line.slice(line.lastIndexOf(" ")));
    }
  }
  return total;
}

async function waitRunning(want, seconds) {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const now = (await running()) > 0;
    if (now === want) return;
    assert(performance.now() < deadline, `after ${seconds} s the workers are ${now ? "busy" : "idle"}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function expect(kind, call) {
  try {
    await call();
  } catch (err) {
    if (err instanceof kind) return err;
    throw err;
  }
  assert.fail(`no ${kind.name} was thrown`);
}

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const create = (body, options) => client.chat.completions.create({ model: MODEL, messages: HELLO, ...body }, options);
const ended = (choice) => assert(["length", "stop"].includes(choice.finish_reason), JSON.stringify(choice));
const addsUp = (u) => assert.equal(u.total_tokens, u.prompt_tokens + u.completion_tokens);

const CHECKS = {
  async "models-list"() {
    const ids = (await all(client.models.list())).map((m) => m.id);
    assert(ids.includes(MODEL), ids.join());
  },

  async "models-retrieve"() {
    assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
    await expect(OpenAI.NotFoundError, () => client.models.retrieve("no-such-model"));
  },

  async chat() {
    const reply = await create({ max_tokens: 8 });
    assert.equal(reply.object, "chat.completion");
    assert.equal(reply.model, MODEL);
    assert.equal(reply.choices[0].message.role, "assistant");
    assert(reply.choices[0].message.content);
    ended(reply.choices[0]);
    assert(reply.usage.prompt_tokens > 0 && reply.usage.completion_tokens <= 8);
    addsUp(reply.usage);
  },

  async "chat-stream"() {
    const chunks = await all(await create({ max_tokens: 8, stream: true }));
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
    assert(chunks.every((c) => c.choices.length === 1 && !c.usage), "usage was not asked for");
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert(chunks.map((c) => c.choices[0].delta.content ?? "").join(""));
    ended(chunks.at(-1).choices[0]);
  },

  async "chat-stream-usage"() {
    const chunks = await all(await create({ max_tokens: 8, stream: true, stream_options: { include_usage: true } }));
    const last = chunks.pop();
    assert.deepEqual(last.choices, []);
    addsUp(last.usage);
    assert(chunks.every((c) => !c.usage));
  },

  async completion() {
    const reply = await client.completions.create({ model: MODEL, prompt: "Once upon a time", max_tokens: 8 });
    assert.equal(reply.object, "text_completion");
    assert(reply.choices[0].text);
    addsUp(reply.usage);
  },

  async "completion-stream"() {
    const body = { model: MODEL, prompt: "Once upon a time", max_tokens: 8, stream: true };
    const chunks = await all(await client.completions.create(body));
    assert(chunks.map((c) => c.choices[0].text).join(""));
    assert(chunks.every((c) => !c.usage), "usage was not asked for");
    ended(chunks.at(-1).choices[0]);
  },

  async tools() {
    const reply = await create(FORCED);
    const call = reply.choices[0].message.tool_calls[0];
    assert(call.id);
    assert.equal(call.type, "function");
    assert.equal(call.function.name, "get_weather");
    assert(typeof call.function.arguments === "string" && call.function.arguments);
  },

  async "tools-stream"() {
    let name = "";
    let args = "";
    for await (const chunk of await create({ ...FORCED, stream: true })) {
      for (const call of chunk.choices[0].delta.tool_calls ?? []) {
        name += call.function.name ?? "";
        args += call.function.arguments ?? "";
      }
    }
    assert.equal(name, "get_weather");
    assert(args);
  },

  async "unknown-model"() {
    for (const stream of [false, true]) {
      const err = await expect(OpenAI.NotFoundError, () => create({ model: "no-such-model", stream }));
      assert.deepEqual([err.code, err.param, err.type], ["model_not_found", "model", "invalid_request_error"]);
      assert(err.message.includes("no-such-model"), err.message);
    }
  },

  async "bad-request"() {
    const err = await expect(OpenAI.BadRequestError, () => create({ messages: [] }));
    assert.deepEqual([err.type, err.param], ["invalid_request_error", "messages"]);
  },

  async "worker-bad-request"() {
    // The request is well formed; the worker itself refuses the value.
    const err = await expect(OpenAI.BadRequestError, () => create({ temperature: -1 }));
    assert.equal(err.param, "temperature");
    assert(err.message.includes("temperature"), err.message);
  },

  async "request-id"() {
    const reply = await create({ max_tokens: 4 }, { headers: { "X-Request-Id": "sdk-check-node" } });
    assert.equal(reply._request_id, "sdk-check-node");
    const [first, second] = [await create({ max_tokens: 4 }), await create({ max_tokens: 4 })];
    assert(first._request_id && first._request_id !== second._request_id);
    const err = await expect(OpenAI.NotFoundError, () => create({ model: "no-such-model" }));
    assert(err.requestID, "an error has no request id");
  },

  async parallel() {
    const one = async (i) => {
      const body = { messages: [{ role: "user", content: `Count to ${i}.` }], max_tokens: 8 };
      if (i % 2) {
        const reply = await create(body);
        return [reply.id, reply.choices[0].message.content];
      }
      const chunks = await all(await create({ ...body, stream: true }));
      return [chunks[0].id, chunks.map((c) => c.choices[0].delta.content ?? "").join("")];
    };
    const replies = await Promise.all(Array.from({ length: 32 }, (_, i) => one(i)));
    assert.equal(new Set(replies.map(([id]) => id)).size, 32);
    assert(replies.every(([, text]) => text));
  },

  async cached() {
    need(env.FAULTS === "1", "needs a simulated worker: others may come to no end");
    const body = { model: MODEL, messages: [{ role: "user", content: "Name three colours that are no colours." }] };
    const deadline = Date.now() + 20_000;
    let whole, response;
    do {
      ({ data: whole, response } = await client.chat.completions.create(body).withResponse());
      need(response.headers.get("x-kvasir-cache"), "no cache here");
      assert(Date.now() < deadline, "no hit");
    } while (response.headers.get("x-vsr-cache-hit") !== "true");
    const { data, response: head } = await client.chat.completions
      .create({ ...body, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    assert.equal(head.headers.get("x-vsr-cache-hit"), "true");
    const chunks = await all(data);
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.deepEqual(chunks.pop().usage, whole.usage);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    assert.equal(chunks.map((c) => c.choices[0].delta.content ?? "").join(""), whole.choices[0].message.content);
  },

  async "cancel-stream"() {
    need(WORKERS.length, "needs WORKER_URL");
    await waitRunning(false, 45);
    const stream = await create({ ...LONG, stream: true });
    let seen = 0;
    for await (const _ of stream) {
      if (++seen === 3) {
        await waitRunning(true, 8);
        break; // the SDK aborts the request
      }
    }
    await waitRunning(false, 8);
  },

  async timeout() {
    need(WORKERS.length, "needs WORKER_URL");
    await waitRunning(false, 45);
    await expect(OpenAI.APIConnectionTimeoutError, () => create(LONG, { timeout: 500 }));
    await waitRunning(false, 8);
  },

  async hang() {
    const options = { ...fault("hang"), timeout: 500 };
    await waitRunning(false, 45);
    await expect(OpenAI.APIConnectionTimeoutError, () => create({ max_tokens: 8 }, options));
    await waitRunning(false, 8);
    // A stream whose head has come is bounded by the caller's own signal, not by the SDK's timeout.
    const signal = AbortSignal.timeout(500);
    const leave = async () => all(await create({ max_tokens: 8, stream: true }, { ...fault("hang"), signal }));
    assert.deepEqual(await leave().catch(() => []), []);
    assert(signal.aborted, "the hanging stream ended by itself");
    await waitRunning(false, 8);
  },

  async interrupted() {
    const options = fault("die-after=3");
    let seen = 0;
    const err = await expect(OpenAI.APIError, async () => {
      for await (const _ of await create({ ...LONG, stream: true }, options)) seen++;
    });
    assert.equal(err.code, "stream_interrupted");
    assert(seen > 0, "the tokens before the cut did not arrive");
  },

  async "error-503"() {
    const err = await expect(OpenAI.InternalServerError, () => create({}, fault("status=503")));
    assert.equal(err.status, 503);
  },

  async "retry-503"() {
    const first = fault("status=503").headers;
    const attempts = [];
    const retrying = new OpenAI({
      ...OPTIONS,
      maxRetries: 2,
      fetch: (url, init) => {
        const headers = new Headers(init.headers);
        attempts.push(headers.get("x-stainless-retry-count"));
        if (attempts.length === 1) Object.entries(first).forEach(([k, v]) => headers.set(k, v));
        return fetch(url, { ...init, headers });
      },
    });
    const reply = await retrying.chat.completions.create({ model: MODEL, messages: HELLO, max_tokens: 8 });
    assert(reply.choices[0].message.content);
    assert.deepEqual(attempts, ["0", "1"]);
  },
};

let failed = 0;
const names = process.argv.slice(2);
for (const name of names.length ? names : Object.keys(CHECKS)) {
  try {
    await CHECKS[name]();
    console.log(`ok   ${name}`);
  } catch (err) {
    if (err instanceof Skip) {
      console.log(`SKIP ${name}: ${err.message}`);
      continue;
    }
    failed++;
    console.log(`FAIL ${name}: ${String(err.message ?? err).replaceAll("\n", " ").slice(0, 500)}`);
    console.error(err);
  }
}
process.exit(failed ? 1 : 0);
