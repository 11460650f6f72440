// Requests of every kind, as applications send them: for the checks of the page and for its pictures.

const SYSTEM = "You work for a shop that sells bicycles. Be brief, be kind, and say what you do not know. ";
const ASKED = [
  "What is the integral of x^2 from 0 to 3?", "Solve 3x + 5 = 20 for x.", "Prove that the square root of 2 is irrational.", "Write a function in Go that reverses a linked list.", "Why does my Python loop never end?\n```python\nwhile True:\n  pass\n```",
  "What are the symptoms of a cold?", "Which tyre fits a 28 inch wheel?", "How do I true a wheel?", "Who wrote Faust?", "Please answer asap: when do you open?", "Explain inflation in two sentences.", "Translate 'good morning' into French.",
];
export const CARD = "Charge my card 4111 1111 1111 1111, please.";

export async function chat(api, body, { signal } = {}) {
  const options = { method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model: "auto", ...body }) };
  const ask = () => fetch(`${api}/v1/chat/completions`, options);
  const reply = await ask().catch((err) => {
    if (err.cause?.code !== "UND_ERR_CONNECT_TIMEOUT") throw err;
    return ask(); // a busy machine: Node gave up after 10 seconds of its own clock
  });
  return { status: reply.status, id: reply.headers.get("x-request-id"), text: await reply.text() };
}

// load sends so many requests, so many at once, and stops early where stop says so. Longer ones have
// a conversation before them, which others have as well.
export async function load(api, { requests, atOnce = 16, tokens = 8, turns = 1, stop = () => false }) {
  let next = 0;
  async function client() {
    for (let i = next++; i < requests && !stop(); i = next++) {
      const before = [{ role: "system", content: SYSTEM.repeat(1 + 12 * (turns - 1)) }];
      for (let turn = 1; turn < turns && turn <= i % turns; turn++) before.push({ role: "user", content: `${ASKED[(i + turn) % 3]} (${turn})` }, { role: "assistant", content: "That depends on the bicycle. ".repeat(20) });
      const asked = i % 41 === 7 ? CARD : i % 5 === 0 ? ASKED[i % ASKED.length] : `${ASKED[i % ASKED.length]} I am customer ${i}.`;
      const body = { messages: [...before, { role: "user", content: asked }], stream: i % 2 === 0, ...(i % 5 === 0 && turns === 1 ? {} : { max_tokens: tokens + (i % 3) * tokens }) }; // an answer that was cut is not kept
      if (i % 67 === 9) body.model = "nobody-has-it";
      const leaves = i % 53 === 11;
      const patience = new AbortController();
      if (leaves) setTimeout(() => patience.abort(), 30);
      try {
        await chat(api, leaves ? { ...body, stream: true, max_tokens: 2000, ignore_eos: true } : body, { signal: patience.signal });
      } catch (err) {
        if (!leaves) throw err;
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client));
}
