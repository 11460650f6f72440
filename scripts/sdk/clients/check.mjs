// Checks the routes beside chats with Anthropic's SDK for Node and with the Vercel AI SDK, whose
// provider for OpenAI asks /v1/responses unless told otherwise.
//
//   node check.mjs [CHECK...]        (default: all; one line `ok|FAIL NAME` each, exit 1 on a FAIL)
//
// Environment: as in check.py.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { embedMany, generateObject, generateText, streamText, tool } from "ai";
import { z } from "zod";

const MODEL = process.env.MODEL || "sim";
const BASE_URL = process.env.KVASIR_BASE_URL || "http://127.0.0.1:8080/v1";

const claude = new Anthropic({ baseURL: BASE_URL.replace(/\/v1$/, ""), apiKey: "none", maxRetries: 0, timeout: 60_000 });
const openai = createOpenAI({ baseURL: BASE_URL, apiKey: "none" });
const options = { model: openai(MODEL), maxRetries: 0 };
const HELLO = [{ role: "user", content: "Name three colours." }];
const CITY = z.object({ city: z.enum(["Oslo", "Rome"]) });

const CHECKS = {
  async messages() {
    const reply = await claude.messages.create({ model: MODEL, max_tokens: 400, messages: HELLO });
    assert.equal(reply.stop_reason, "end_turn");
    assert.match(reply.content[0].text, /simulated answer/);
  },

  async "messages-stream"() {
    const stream = claude.messages.stream({ model: MODEL, max_tokens: 20, messages: HELLO });
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const final = await stream.finalMessage();
    assert.equal(final.content[0].text, text);
    assert.equal(final.stop_reason, "max_tokens");
  },

  async "messages-tools"() {
    const reply = await claude.messages.create({
      model: MODEL,
      max_tokens: 99,
      messages: HELLO,
      tools: [{ name: "get_weather", input_schema: { type: "object", properties: { city: { enum: ["Oslo"] } }, required: ["city"] } }],
      tool_choice: { type: "tool", name: "get_weather" },
    });
    assert.equal(reply.content[0].type, "tool_use");
    assert.deepEqual(reply.content[0].input, { city: "Oslo" });
  },

  async "ai-generate"() {
    const { text, finishReason, usage } = await generateText({ ...options, system: "Be brief.", prompt: "Hello there" });
    assert.match(text, /simulated answer/);
    assert.equal(finishReason, "stop");
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0, JSON.stringify(usage));
  },

  async "ai-stream"() {
    const stream = streamText({ ...options, prompt: "Stream this", onError: ({ error }) => { throw error; } });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    assert.match(text, /simulated answer/);
    assert.equal(await stream.finishReason, "stop");
  },

  async "ai-tools"() {
    const weather = tool({ description: "The weather", inputSchema: CITY, execute: async ({ city }) => `Rain in ${city}` });
    const reply = await generateText({ ...options, prompt: "Weather?", tools: { weather }, toolChoice: "required" });
    assert.deepEqual(reply.toolCalls.map((call) => [call.toolName, call.input]), [["weather", { city: "Oslo" }]]);
    assert.equal(reply.toolResults[0].output, "Rain in Oslo");
  },

  async "ai-object"() {
    const schema = z.object({ name: z.string().min(3), age: z.int().min(18), mail: z.email(), tags: z.array(z.string()), next: CITY.nullable() });
    const { object } = await generateObject({ ...options, schema, prompt: "A person" });
    schema.parse(object);
  },

  async "ai-embed"() {
    const { embeddings } = await embedMany({ model: openai.embedding(MODEL), values: ["one two", "three"], maxRetries: 0 });
    assert.equal(embeddings.length, 2);
    assert.ok(Math.abs(embeddings[0].reduce((sum, x) => sum + x * x, 0) - 1) < 1e-4);
  },
};

let failed = 0;
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(CHECKS)) {
  try {
    await CHECKS[name]();
    console.log(`ok   ${name}`);
  } catch (err) {
    failed++;
    console.log(`FAIL ${name}: ${String(err).replaceAll("\n", " ").slice(0, 500)}`);
    console.error(err);
  }
}
process.exit(failed ? 1 : 0);
