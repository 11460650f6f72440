// The pictures of the page: the Kvasir that they are taken of, what it is asked meanwhile, and how each is taken.
// pictures.mjs makes those of docs/pictures by it, looks.mjs those that are compared with them.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, go, open, settle, shows } from "./browser.mjs";
import { load } from "./load.mjs";

const freePort = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

// stage starts this kvasir with simulated workers. end stops it.
export async function stage(binary) {
  const dir = mkdtempSync(join(tmpdir(), "kvasir-pictures-"));
  const [listen, admin] = [await freePort(), await freePort()];
  writeFileSync(join(dir, "kvasir.yaml"), `
server: {listen: "127.0.0.1:${listen}", admin: "127.0.0.1:${admin}", drain: {delay: 0s, timeout: 5s}}
simulate:
  - {name: prefill-0, role: prefill}
  - {name: decode-0, role: decode}
  - {name: decode-1, role: decode}
  - {name: decode-2, role: decode}
decisions:
  - {name: maths, when: {category: [math, physics]}, system_prompt: You are a mathematician., reasoning: true}
  - {name: code, when: {category: computer science}, system_prompt: Answer with working code.}
  - {name: health, when: {category: health}, system_prompt: Say when to see a doctor.}
`);
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KVASIR_"))); // it is for other ones
  const kvasir = spawn(binary, ["serve", "--config", "kvasir.yaml"], { cwd: dir, stdio: ["ignore", "ignore", "inherit"], env: { ...environment, KVASIR_LOG_LEVEL: "error" } });
  const exited = new Promise((done) => kvasir.on("exit", done));
  const end = async () => {
    kvasir.kill("SIGTERM");
    await exited;
    rmSync(dir, { recursive: true });
  };
  const page = `http://127.0.0.1:${admin}/`;
  try {
    await eventually("Kvasir serves", async () => (await fetch(`${page}readyz`).catch(() => ({}))).ok === true);
  } catch (err) {
    await end();
    throw err;
  }
  return { api: `http://127.0.0.1:${listen}`, page, end };
}

// under has this Kvasir asked by clients of several kinds until the function that it gives is called.
export function under(api, fault) {
  let over = false;
  const waves = [];
  const wave = (requests, atOnce, tokens, turns) => waves.push(load(api, { requests, atOnce, tokens, turns, stop: () => over }).catch((err) => over || fault(err)));
  wave(1e6, 10, 60, 6);
  wave(1e6, 3, 40, 1);
  const more = setInterval(() => wave(60, 8, 80, 6), 25_000); // more clients come and go, so that the lines say something
  return async () => {
    over = true;
    clearInterval(more);
    await Promise.all(waves);
  };
}

// prepare chooses what the pictures show: a request with all steps, and an entry of the cache.
export async function prepare({ page }) {
  const answers = async (path) => (await fetch(`${page}${path}`)).json();
  let entry;
  await eventually("an answer comes from the cache", async () => {
    const { recent } = await answers("api/cache?limit=50");
    const entries = await Promise.all([...new Set(recent.map((hit) => hit.entry))].map((id) => answers(`cache/${id}`)));
    entry = entries.filter(({ answer_bytes }) => answer_bytes > 0).sort((a, b) => a.answer_bytes - b.answer_bytes)[0]?.id; // all of its answer is shown
    return entry !== undefined;
  });
  let request;
  await eventually("a request has all steps", async () => {
    const { requests } = await answers("api/requests?outcome=ok&limit=300");
    // One that the browser's share of the machine has not slowed.
    request = requests.filter((r) => r.stream && r.prefill && r.decision && r.prompt_tokens > 300 && r.completion_tokens > 50).sort((a, b) => a.overhead_ms - b.overhead_ms)[0];
    return request !== undefined;
  });
  return { entry, request: request.seq };
}

// SHOTS are the pictures, by name: the view, its colours, how high it is, and what is done before it is taken.
export const SHOTS = {
  overview: { view: () => "overview", scheme: "dark", height: 940, ready: (p) => eventually("lines are drawn", async () => (await p.locator("figure path.line").first().getAttribute("d"))?.includes("L")) },
  workers: { view: () => "workers", scheme: "light", height: 900, ready: (p) => shows(p, /decode-2/) },
  requests: { view: () => "requests", scheme: "dark", height: 620, ready: (p) => eventually("the list is long", async () => (await p.locator("table.list tbody tr").count()) > 20) },
  request: { view: ({ request }) => `requests/${request}`, scheme: "dark", height: 1010, ready: (p) => shows(p, /Its way[\s\S]*Placement/) },
  decisions: { view: () => "decisions", scheme: "light", height: 720, ready: async (p) => {
    await shows(p, /maths/);
    await p.locator("#threshold").fill("0.8");
    await shows(p, /With this threshold/);
    await p.locator("#threshold").blur();
  } },
  cache: { view: ({ entry }) => `cache/${entry}`, scheme: "light", height: 760, ready: (p) => shows(p, /Answer, its beginning/, ".entry") },
  try: { view: () => "try", scheme: "dark", height: 900, ready: async (p) => {
    await p.fill("#prompt-A", `What is the integral of x^2 from 0 to ${100 + Math.floor(900 * Math.random())}?`); // in no cache
    await p.getByRole("button", { name: "Send", exact: true }).click();
    await shows(p, /Its way/);
  } },
  configuration: { view: () => "configuration", scheme: "light", height: 620, ready: (p) => shows(p, /server\.listen/) },
};

// stand opens a browser's page for pictures of its colours; before is as open has it.
export async function stand(chromium, url, name, before) {
  const one = await open(chromium, url, { scheme: SHOTS[name].scheme, before });
  one.expected.push(/^404 \/api\/requests\//); // Try it asks for a request a moment before it is kept
  return one;
}

// shoot takes a picture.
export async function shoot({ page }, name, chosen, path) {
  const { view, height, ready } = SHOTS[name];
  await page.setViewportSize({ width: 1280, height });
  await go(page, view(chosen));
  await ready(page);
  await settle(page);
  await page.mouse.move(1, 1);
  await page.screenshot({ path });
}
