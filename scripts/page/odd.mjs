// Looks at the page before a listener that has what no simulated worker has (fixture.mjs): GPUs, an
// admin key, names that look like HTML, a connection that is lost. Lines and exit as of check.mjs.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { accessible, browser, eventually, go, open, scenarios, shifted, shows, VIEWS } from "./browser.mjs";
import { fixture } from "./fixture.mjs";

const chromium = await browser();

// on opens the page of a listener, and looks for what must never be.
async function on(options, look) {
  const admin = await fixture(options);
  const one = await open(chromium, admin.url, options);
  try {
    await look(one, admin);
    assert.deepEqual(one.problems, []);
  } finally {
    await one.close();
    await admin.close();
  }
}

const CHECKS = {
  async "names that look like HTML stay text"() {
    await on({}, async ({ page }) => {
      for (const view of [...VIEWS, "requests/req-300", "cache/00c0ffee"]) {
        await go(page, view);
        await eventually(`${view} is shown`, async () => (await page.locator("main").innerText()).length > 60);
        if (view === "try") {
          await page.getByRole("button", { name: "Send", exact: true }).click();
          await shows(page, /<img src=x/, ".out");
          await shows(page, /Its way/);
        }
        assert.equal(await page.locator("img, script:not([src])").count(), 0, view);
        assert.doesNotMatch(await page.title(), /owned/, view);
      }
    });
  },

  async "no file makes HTML of a text"() {
    const dir = new URL("../../page/static/", import.meta.url);
    for (const name of readdirSync(dir)) assert.doesNotMatch(readFileSync(new URL(name, dir), "utf8"), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style="|onclick="/, name);
  },

  async "the load is that of now"() {
    await on({}, async ({ page }) => {
      const told = await page.evaluate(async () => {
        const { merge, upToNow } = await import("./page/series.js");
        const at = (t, in_flight, more) => ({ t, in_flight, queue: 0, requests: 2, ...more });
        const load = (samples) => samples.map(({ t, in_flight, queue }) => [t, in_flight, queue]);
        const overview = { series: { step_s: 5, samples: [at(95, 1), at(100, 2)] }, now: new Date(103_900).toISOString(), in_flight: 9, queued: 4 };
        const now = upToNow(overview);
        return [load(now), load(merge(now, at(104, 11), 5)), load(merge([at(95, 1), at(100, 2)], at(100, 7), 5)), load(upToNow({ ...overview, series: { step_s: 5, samples: [] } }))];
      });
      assert.deepEqual(told, [[[95, 1, 0], [100, 2, 0], [103, 9, 4]], [[95, 1, 0], [100, 2, 0], [104, 11, 0]], [[95, 1, 0], [100, 7, 0]], []]);
      await shows(page, /hits, p50 0\.30 ms\s+not streamed, p50 [\d.]+ m?s/);
    });
  },

  async "GPUs"() {
    await on({}, async ({ page }) => {
      await go(page, "workers");
      await shows(page, /93 %[\s\S]*66\.1 GiB of 79\.2 GiB/, "article[aria-label='decode-0']");
      await shows(page, /throttled: heat/, "article[aria-label='decode-0']");
      await shows(page, /an uncorrected ECC error[\s\S]*also used by worker python3[\s\S]*stale/, "article[aria-label='decode-1']");
      for (const scheme of ["dark", "light"]) {
        await page.emulateMedia({ colorScheme: scheme });
        await accessible(page, `workers, ${scheme}`);
      }
    });
  },

  async "the admin key is asked for, wrong ones too"() {
    await on({ key: "right" }, async ({ page, expected }) => {
      expected.push(/^401 /);
      await page.waitForSelector("#key[open]");
      await page.fill("#key-value", "wrong");
      await page.keyboard.press("Enter");
      await shows(page, /That is not the key/, "#key");
      await page.fill("#key-value", "right");
      await page.keyboard.press("Enter");
      await shows(page, /Workers up\s+3 of 4/);
      await shows(page, /degraded/, "#state");
      await page.reload();
      await shows(page, /Workers up\s+3 of 4/);
      assert.equal(await page.locator("#key[open]").count(), 0);
      assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage }).includes("right")), false);
    });
  },

  async "who gives no admin key is not asked for ever"() {
    await on({ key: "right" }, async ({ page, expected }) => {
      expected.push(/^401 /);
      let tries = 0;
      page.on("response", (r) => (tries += Number(r.url().endsWith("/api/live"))));
      await page.waitForSelector("#key[open]");
      await page.keyboard.press("Escape");
      await shows(page, /The admin key is missing/, "#lost");
      await eventually("it tries again", async () => tries > 1 || tries);
      assert.equal(await page.locator("#key[open]").count(), 0);
      await page.getByRole("button", { name: "Try now" }).click();
      await page.waitForSelector("#key[open]");
      await page.fill("#key-value", "right");
      await page.keyboard.press("Enter");
      await shows(page, /degraded/, "#state");
      await eventually("it is connected", async () => page.locator("#lost").isHidden());
    });
  },

  async "a lost connection comes back"() {
    await on({}, async ({ page, expected }, admin) => {
      expected.push(/^net::/);
      await shows(page, /degraded/, "#state");
      const { port } = new URL(admin.url);
      await admin.close();
      await shows(page, /Not connected: what is shown may be old/, "#lost");
      assert.equal(await page.locator("#state").innerText(), "not connected");
      const again = await fixture({ port: Number(port) });
      await eventually("it is connected again", async () => (await page.locator("#lost").isHidden()) && (await page.locator("#state").innerText()) === "degraded");
      await again.close();
    });
  },

  async "nobody looks, nothing is asked"() {
    await on({}, async ({ page }, admin) => {
      await eventually("it watches", async () => admin.watchers() === 1);
      const hide = (hidden) => page.evaluate((is) => {
        Object.defineProperty(document, "hidden", { value: is, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
      await hide(true);
      await eventually("it stops", async () => admin.watchers() === 0);
      assert.equal(await page.locator("#lost").isHidden(), true);
      await hide(false);
      await eventually("it goes on", async () => admin.watchers() === 1);
    });
  },

  async "50 requests a second move nothing"() {
    await on({ perSecond: 50 }, async ({ page }) => {
      await go(page, "requests");
      await eventually("the list is full", async () => (await page.locator("table.list tbody tr").count()) === 200);
      await page.evaluate(() => { window.rows = [...document.querySelectorAll("table.list tbody tr")]; });
      const newest = () => page.locator("table.list tbody a").first().getAttribute("href");
      const before = Number((await newest()).split("/")[1]);
      await eventually("150 more have come", async () => Number((await newest()).split("/")[1]) > before + 150);
      assert.equal(await page.evaluate(() => [...document.querySelectorAll("table.list tbody tr")].every((row, i) => row === window.rows[i])), true, "the rows are the same nodes");
      assert.equal(await page.locator("table.list tbody tr").count(), 200);
      await shifted(page);
    });
  },
};

const failed = await scenarios(CHECKS, process.argv.slice(2));
await chromium.close();
process.exit(failed > 0 ? 1 : 0);
