// Makes docs/pictures/page-*.png: the page of a real Kvasir whose simulated workers are under load.
//
//   node pictures.mjs [SECONDS]      (of load, default 100; needs bin/kvasir)
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, eventually, go, open, settle, shows } from "./browser.mjs";
import { load } from "./load.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LARGEST = 150_000; // bytes
const SECONDS = Number(process.argv[2] ?? 100);

const freePort = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

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
const kvasir = spawn(join(ROOT, "bin/kvasir"), ["serve", "--config", join(dir, "kvasir.yaml")], { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, KVASIR_LOG_LEVEL: "error" } });
const api = `http://127.0.0.1:${listen}`, page = `http://127.0.0.1:${admin}/`;
const chromium = await browser();
const waves = [], failed = [];
let over = false, more = 0;

async function picture(one, name, view, { ready, height }) {
  await go(one.page, view);
  await ready?.(one.page);
  await settle(one.page);
  if (height) await one.page.setViewportSize({ width: 1280, height });
  const path = join(ROOT, "docs/pictures", `page-${name}.png`);
  await one.page.mouse.move(1, 1);
  await one.page.screenshot({ path });
  const size = statSync(path).size;
  console.log(`docs/pictures/page-${name}.png: ${(size / 1024).toFixed(0)} KiB`);
  if (size > LARGEST) throw new Error(`${path} is ${size} bytes, more than ${LARGEST}`);
}

try {
  await eventually("Kvasir serves", async () => (await fetch(`${page}readyz`).catch(() => ({}))).ok === true);
  const wave = (requests, atOnce, tokens, turns) => waves.push(load(api, { requests, atOnce, tokens, turns, stop: () => over }).catch((err) => over || failed.push(err)));
  wave(1e6, 10, 60, 6);
  wave(1e6, 3, 40, 1);
  more = setInterval(() => wave(60, 8, 80, 6), 25_000); // more clients come and go, so that the lines say something
  await new Promise((done) => setTimeout(done, SECONDS * 1000));
  // One that was answered before the browser took its share of the machine.
  const { requests } = await (await fetch(`${page}api/requests?outcome=ok&limit=1000`)).json();
  const chosen = requests.filter((r) => r.stream && r.prefill && r.decision && r.prompt_tokens > 300 && r.completion_tokens > 50).sort((a, b) => a.overhead_ms - b.overhead_ms)[0];
  const dark = await open(chromium, page, { scheme: "dark" }), light = await open(chromium, page, { scheme: "light" });
  const drawn = (p) => eventually("lines are drawn", async () => (await p.locator("figure path.line").first().getAttribute("d"))?.includes("L"));
  await picture(dark, "request", `requests/${chosen.seq}`, { height: 1010, ready: (p) => shows(p, /Its way[\s\S]*Placement/) });
  await picture(dark, "overview", "overview", { height: 920, ready: drawn });
  await picture(light, "workers", "workers", { height: 900, ready: (p) => shows(p, /decode-2/) });
  await picture(light, "decisions", "decisions", { height: 720, ready: async (p) => {
    await shows(p, /maths/);
    await p.locator("#threshold").fill("0.8");
    await shows(p, /With this threshold/);
    await p.locator("#threshold").blur();
  } });
  for (const err of failed) console.error(`some of the load failed: ${err.message}`); // the pictures show what there was
  if (failed.length === waves.length) throw failed[0];
} finally {
  over = true;
  clearInterval(more);
  await Promise.all(waves);
  await chromium.close();
  kvasir.kill("SIGTERM");
  await new Promise((done) => kvasir.on("exit", done));
  rmSync(dir, { recursive: true });
}
