// Chromium as the checks and the pictures drive it: what goes wrong on a page is noted, whatever is looked at.
import assert from "node:assert/strict";
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
export const VIEWS = ["overview", "workers", "requests", "try", "decisions", "cache", "configuration"];

function executable() {
  for (const dir of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome", "chrome"]) {
      try {
        accessSync(join(dir, name), constants.X_OK);
        return join(dir, name);
      } catch {
        // Not here.
      }
    }
  }
  throw new Error("there is no Chromium");
}

// browser starts one. As root it has no sandbox: it opens nothing but this machine's Kvasir.
export const browser = () => chromium.launch({ executablePath: executable(), args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--font-render-hinting=none"] });

// open opens a page of its own. problems has what went wrong; answers that a check asks for, such as
// a reload that fails, are named by expected: patterns of "STATUS PATH". before is called ahead of the first request.
export async function open(browser, url, { scheme = "dark", width = 1280, height = 900, scale = 1, hash = "", before } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, deviceScaleFactor: scale, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems = [], expected = [];
  const host = new URL(url).host;
  page.on("pageerror", (err) => problems.push(`exception: ${err.stack}`));
  page.on("console", (m) => {
    if (m.type() !== "error" && m.type() !== "warning") return;
    if (/^Failed to load resource/.test(m.text())) return; // by its status, below
    problems.push(`console ${m.type()}: ${m.text()}`);
  });
  page.on("response", (r) => {
    const what = `${r.status()} ${new URL(r.url()).pathname}`;
    if (r.status() >= 400 && !expected.some((pattern) => pattern.test(what))) problems.push(`answer: ${what}`);
  });
  page.on("requestfailed", (r) => {
    const why = r.failure()?.errorText ?? "";
    const what = `${why} ${new URL(r.url()).pathname}`;
    if (why !== "net::ERR_ABORTED" && !expected.some((pattern) => pattern.test(what))) problems.push(`request failed: ${what}`); // aborted: the page's own doing
  });
  page.on("request", (r) => {
    if (new URL(r.url()).host !== host && !r.url().startsWith("data:")) problems.push(`another host was asked: ${r.url()}`);
  });
  await page.addInitScript(() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (!entry.hadRecentInput) window.shifts.push({ value: entry.value, of: entry.sources.map(({ node }) => node?.className || node?.nodeName).slice(0, 3) });
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
  await before?.(page);
  await page.goto(`${url}${hash}`);
  return { page, problems, expected, close: () => context.close() };
}

// go opens a view and waits until it has what it shows.
export async function go(page, view) {
  await page.evaluate((hash) => { location.hash = hash; }, `#${view}`);
  await page.waitForFunction((tab) => document.querySelector("#tabs [aria-current]")?.hash === `#${tab}`, view.split("/")[0]);
}

// settle forgets how the layout has shifted: a script that changes the view is no user, whose doing counts not.
export const settle = (page) => page.evaluate(() => { window.shifts = []; });

// shifted is the layout's shift so far, without those that follow from what a user does.
export async function shifted(page) {
  const all = await page.evaluate(() => window.shifts);
  const sum = all.reduce((total, { value }) => total + value, 0);
  assert.ok(sum < 0.1, `the layout shifts by ${sum.toFixed(3)}: ${JSON.stringify(all.slice(0, 8))}`);
  return sum;
}

// accessible fails for serious and critical findings of axe-core.
export async function accessible(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(grave.map(({ id, nodes }) => `${where}: ${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ""}`).join(" | ")}`), []);
  return violations.map(({ id, impact }) => `${impact} ${id}`);
}

// eventually waits until ask holds, and says what it saw last where it never does. That takes seconds; the patience is for a
// machine that is busy with other tests.
export async function eventually(what, ask, patience = 120_000) {
  const end = Date.now() + patience;
  for (let saw; ; ) {
    saw = await ask();
    if (saw === true) return;
    if (Date.now() > end) assert.fail(`it never came true: ${what}; saw ${JSON.stringify(saw)?.slice(0, 600)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export async function text(page, selector = "main") {
  return page.locator(selector).first().innerText();
}

export async function shows(page, pattern, selector = "main") {
  await eventually(`${selector} shows ${pattern}`, async () => {
    const seen = await text(page, selector);
    return pattern.test(seen) || seen;
  });
}

// scenarios runs each and prints "ok NAME" or "FAIL NAME: why" for it.
export async function scenarios(all, chosen) {
  let failed = 0;
  for (const [name, run] of Object.entries(all)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const began = Date.now();
    try {
      await run();
      console.log(`ok ${name}`);
    } catch (err) {
      failed++;
      console.log(`FAIL ${name}: ${String(err.message).replaceAll("\n", " ").slice(0, 1500)}`);
      console.error(err.stack);
    }
    if (process.env.TIMES) console.error(`${name}: ${Date.now() - began} ms`);
  }
  return failed;
}
