// Looks at the page of a real Kvasir in a real Chromium.
//
//   node check.mjs [CHECK...]        (default: all; one line `ok|FAIL NAME` each, exit 1 on a FAIL)
//
// Environment: KVASIR_API and KVASIR_ADMIN, its listeners' URLs; KVASIR_CONFIG, its file, which is
// broken and mended; KVASIR_DOOMED, the process of the worker b, which is killed; KVASIR_LOCKED, the
// admin listener of another one, which wants the-admin-key, and alices-key at its API; TIMES: say how
// long each took. The checks go from the first to the last: an idle Kvasir, one under load, one with faults.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { accessible, browser, eventually, go, open, scenarios, settle, shifted, shows, text, VIEWS } from "./browser.mjs";
import { CARD, chat, load } from "./load.mjs";

const { KVASIR_API: API, KVASIR_ADMIN: ADMIN, KVASIR_CONFIG: CONFIG, KVASIR_DOOMED: DOOMED, KVASIR_LOCKED: LOCKED } = process.env;
const URL_OF_PAGE = `${ADMIN}/`;
const chromium = await browser();
const main = await open(chromium, URL_OF_PAGE);
const { page } = main;
const fetched = async (path) => (await fetch(`${ADMIN}/${path}`)).json();

const CHECKS = {
  async "nothing asked yet"() {
    await shows(page, /Ready: nothing is degraded/);
    await shows(page, /No request yet/);
    await go(page, "requests");
    await shows(page, /No request yet: send one by Try it/);
    await go(page, "decisions");
    await shows(page, /No request was judged yet/);
    await go(page, "cache");
    await shows(page, /Ask the same twice/);
    assert.match(await text(page, "#state"), /ready/);
  },

  async "a thousand requests, live"() {
    await go(page, "requests");
    await shows(page, /the last 0 requests kept/);
    await settle(page);
    await load(API, { requests: 1100, atOnce: 12, tokens: 4 }); // some clients leave before they have asked
    await eventually("the list is full", async () => (await page.locator("table.list tbody tr").count()) === 200 || page.locator("table.list tbody tr").count());
    await shows(page, /the last 1,000 requests kept/);
    await shows(page, /answered[\s\S]*blocked|blocked[\s\S]*answered/);
    const { id } = await chat(API, { messages: [{ role: "user", content: "The last one" }] });
    const { requests } = await fetched("api/requests?limit=1");
    assert.equal(requests[0].id, id);
    await eventually("the newest is on top", async () => (await page.locator("table.list tbody a").first().getAttribute("href")) === `#requests/${requests[0].seq}`);
    await shifted(page);
  },

  async "a row under the pointer stays"() {
    await page.locator("table.list tbody tr").nth(2).hover();
    const before = await page.locator("table.list tbody a").nth(2).getAttribute("href");
    await chat(API, { messages: [{ role: "user", content: "Another one" }] });
    await shows(page, /\b\d+ new/);
    assert.equal(await page.locator("table.list tbody a").nth(2).getAttribute("href"), before);
    await page.mouse.move(2, 2);
    await eventually("it goes on", async () => !/ new/.test(await text(page, ".sum")));
  },

  async "filters and older requests"() {
    await page.selectOption("#by-outcome", "blocked");
    await eventually("only blocked ones", async () => {
      const all = await page.locator("table.list tbody .outcome").allInnerTexts();
      return (all.length > 5 && all.every((one) => one.includes("blocked"))) || all.slice(0, 5);
    });
    await page.selectOption("#by-outcome", "");
    await eventually("all again", async () => (await page.locator("table.list tbody tr").count()) === 200);
    await page.getByRole("button", { name: "Older" }).click();
    await shows(page, /Older ones/);
    await page.getByRole("button", { name: "Newest" }).click();
    await shows(page, /requests kept/);
  },

  async "one request's way"() {
    const { requests } = await fetched("api/requests?outcome=ok&limit=1");
    await go(page, `requests/${requests[0].id}`);
    for (const what of [/judged/, /worker chosen/, /answer passed on/, /first byte at/, /Placement/, /chosen/, /Signals/, /Attack/, /Decision|Cache/]) await shows(page, what);
    await page.getByRole("button", { name: "Kvasir's own" }).click();
    assert.equal(await page.getByRole("button", { name: "Kvasir's own" }).getAttribute("aria-pressed"), "true");
    main.expected.push(/^404 \/api\/requests\/never-was/);
    await go(page, "requests/never-was");
    await shows(page, /not kept any more/);
  },

  async "overview under load"() {
    const busy = load(API, { requests: 200, atOnce: 4, tokens: 4 }); // times are those of the last five seconds
    await go(page, "overview");
    await shows(page, /Time to first byte\s+now\s+p50\s+[\d.]+ m?s/);
    await busy;
    await eventually("lines are drawn", async () => (await page.locator("figure path.line").first().getAttribute("d")).includes("L"));
    assert.match(await page.locator("figure desc").first().textContent(), /now .*at most/);
    await shows(page, /Workers up\s+2 of 2/);
    await page.locator(".plot").first().hover({ position: { x: 20, y: 40 } });
    await eventually("the moment under the pointer", async () => /\d\d:\d\d:\d\d/.test(await text(page, "figure .when")));
    await page.mouse.move(2, 2);
  },

  async "try it"() {
    await go(page, "try");
    main.expected.push(/^404 \/api\/requests\//); // it is kept a moment after its end
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await shows(page, /first token after .* tokens in/, "#main .answer");
    await shows(page, /Its way/);
    await shows(page, /x-vsr-selected-decision\s+maths/);
    await shows(page, /x-kvasir-worker\s+[ab]/);
    await page.fill("#prompt-A", CARD);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await shows(page, /x-vsr-pii-types\s+CREDIT_CARD/);
    await shows(page, /not allowed: CREDIT_CARD/);
    await page.getByRole("button", { name: "Explain without sending" }).click();
    await shows(page, /Nothing was sent/);
    await shows(page, /It would be blocked: pii/);
    await page.check("#try-both");
    await page.uncheck("#try-stream");
    await page.fill("#prompt-A", "What is 2 + 2?");
    for (const button of await page.getByRole("button", { name: "Send", exact: true }).all()) await button.click();
    for (const pane of ["Prompt A", "Prompt B"]) {
      await eventually(`${pane} is answered`, async () => /simulated/.test(await page.getByRole("region", { name: pane }).innerText()));
      await eventually(`${pane} has its way`, async () => /Its way/.test(await page.getByRole("region", { name: pane }).innerText()));
    }
    await page.fill("#try-model", "nobody-has-it");
    main.expected.push(/^404 \/api\/try\//);
    await page.getByRole("button", { name: "Send", exact: true }).first().click();
    await shows(page, /Refused with status 404/);
  },

  async decisions() {
    await go(page, "decisions");
    await shows(page, /maths/);
    await shows(page, /as configured/);
    await page.locator("#threshold").fill("0.99");
    await shows(page, /configured is 0.60/);
    await shows(page, /With this threshold, [\d,]+ of [\d,]+ requests/);
    assert.ok((await page.locator(".histogram rect").count()) === 20);
    await page.getByRole("link").filter({ hasText: /^[0-9a-f-]{36}$/ }).first().click();
    await shows(page, /All requests/);
  },

  async "a cache entry is shown and dropped"() {
    const asked = { messages: [{ role: "user", content: "What colour has the sky at noon?" }] };
    await chat(API, asked);
    await eventually("a hit", async () => {
      await chat(API, asked);
      return (await fetched("api/cache?limit=1")).recent[0]?.model === "sim";
    });
    await go(page, "cache");
    await page.locator("td a[href^='#cache/']").first().click();
    await shows(page, /What colour has the sky/, ".entry");
    await page.getByRole("button", { name: "Drop it…" }).click();
    await page.keyboard.press("Escape");
    await shows(page, /What colour has the sky/, ".entry");
    await page.getByRole("button", { name: "Drop it…" }).click();
    main.expected.push(/^404 \/cache\//);
    await page.getByRole("button", { name: "Drop it", exact: true }).click();
    await shows(page, /was dropped/, "#said");
  },

  async "a worker is drained and taken back"() {
    await go(page, "workers");
    const card = page.getByRole("article", { name: "a", exact: true });
    await card.getByRole("button").click();
    await shows(page, /Drain a\?/, "#confirm");
    await page.keyboard.press("Escape");
    assert.equal((await fetched("api/workers")).workers.find(({ name }) => name === "a").draining, false);
    await card.getByRole("button").click();
    await page.getByRole("button", { name: "Drain it" }).click();
    await eventually("it drains", async () => /draining/.test(await card.innerText()) || card.innerText());
    assert.equal((await fetched("api/workers")).workers.find(({ name }) => name === "a").draining, true);
    await card.getByRole("button", { name: "Undrain a" }).click();
    await eventually("it is back", async () => !/draining/.test(await card.innerText()) || card.innerText());
  },

  async "a reload that fails"() {
    await go(page, "configuration");
    await shows(page, /server\.listen/);
    await page.fill("#find-key", "routing.policy");
    await eventually("one key is found", async () => (await page.locator("table.config tbody tr").count()) === 1);
    const good = readFileSync(CONFIG, "utf8");
    appendFileSync(CONFIG, "\nroutign: {policy: kv}\n");
    main.expected.push(/^422 \/reload$/);
    await page.getByRole("button", { name: "Reload…" }).click();
    await page.getByRole("button", { name: "Reload", exact: true }).click();
    await shows(page, /not taken.*routign/s, "#said");
    await shows(page, /no\s.*routign/s, "table.reloads");
    writeFileSync(CONFIG, good);
    await page.getByRole("button", { name: "Reload…" }).click();
    await page.getByRole("button", { name: "Reload", exact: true }).click();
    await eventually("it is taken over", async () => /yes/.test(await text(page, "table.reloads tbody tr")));
  },

  async "no layout shift while it is live"() {
    for (const view of VIEWS) {
      const one = await open(chromium, URL_OF_PAGE, { hash: `#${view}` });
      await load(API, { requests: 60, atOnce: 4, tokens: 4 });
      await shifted(one.page).catch((err) => assert.fail(`${view}: ${err.message}`));
      assert.deepEqual(one.problems, []);
      await one.close();
    }
  },

  async "a worker dies"() {
    await go(page, "overview");
    await shows(page, /2 of 2/);
    await settle(page);
    process.kill(Number(DOOMED), "SIGKILL");
    await shows(page, /Degraded:/, ".status");
    await shows(page, /1 of 2/);
    await eventually("the head says so", async () => (await text(page, "#state")) === "degraded");
    await shifted(page);
    await go(page, "workers");
    const card = page.getByRole("article", { name: "b", exact: true });
    await eventually("it is down", async () => /down/.test(await card.innerText()) || card.innerText());
  },

  async "axe, dark and light"() {
    const { requests } = await fetched("api/requests?outcome=ok&limit=1");
    for (const scheme of ["dark", "light"]) {
      const one = await open(chromium, URL_OF_PAGE, { scheme });
      one.expected.push(/^404 \/api\/requests\//);
      for (const view of [...VIEWS, `requests/${requests[0].seq}`]) {
        await go(one.page, view);
        if (view === "try") {
          await one.page.getByRole("button", { name: "Send", exact: true }).click();
          await shows(one.page, /Its way/);
        }
        await eventually(`${view} is shown`, async () => (await text(one.page)).length > 60);
        const light = await accessible(one.page, `${view}, ${scheme}`);
        if (light.length > 0) console.error(`axe, ${view}, ${scheme}, no more than moderate: ${light}`);
      }
      await go(one.page, "workers");
      await one.page.getByRole("button", { name: "Drain a" }).click();
      await accessible(one.page, `a dialog, ${scheme}`);
      assert.deepEqual(one.problems, []);
      await one.close();
    }
  },

  async "on a phone"() {
    const { requests } = await fetched("api/requests?outcome=ok&limit=1");
    const one = await open(chromium, URL_OF_PAGE, { width: 390, height: 844 });
    for (const view of [...VIEWS, `requests/${requests[0].seq}`]) {
      await go(one.page, view);
      await eventually(`${view} is shown`, async () => (await text(one.page)).length > 60);
      const [inner, whole] = await one.page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
      assert.ok(whole <= inner, `${view} is ${whole} wide, the phone ${inner}`);
    }
    assert.deepEqual(one.problems, []);
    await one.close();
  },

  async keyboard() {
    const one = await open(chromium, URL_OF_PAGE);
    await shows(one.page, /Time to first byte/);
    await one.page.keyboard.press("Tab");
    assert.equal(await one.page.evaluate(() => document.activeElement.id), "skip");
    await one.page.keyboard.press("Enter");
    assert.equal(await one.page.evaluate(() => document.activeElement.id), "main");
    await one.page.locator("#tabs a").first().focus();
    for (const view of VIEWS) {
      const focused = await one.page.evaluate(() => [document.activeElement.hash, document.activeElement.matches(":focus-visible")]);
      assert.deepEqual(focused, [`#${view}`, true]);
      await one.page.keyboard.press("Enter");
      await eventually(`${view} is current`, async () => (await one.page.evaluate(() => document.querySelector("#tabs [aria-current]").hash)) === `#${view}`);
      await one.page.keyboard.press("ArrowRight");
    }
    await one.page.keyboard.press("End");
    await one.page.keyboard.press("ArrowLeft");
    assert.equal(await one.page.evaluate(() => document.activeElement.hash), "#cache");
    assert.deepEqual(one.problems, []);
    await one.close();
  },

  async "keys of the admin listener and of the API"() {
    const one = await open(chromium, `${LOCKED}/`, { hash: "#try" });
    one.expected.push(/^401 /, /^404 \/api\/requests\//);
    await one.page.waitForSelector("#key[open]");
    await one.page.fill("#key-value", "the-admin-key");
    await one.page.getByRole("button", { name: "Use it" }).click();
    await shows(one.page, /ready/, "#state");
    await one.page.getByRole("button", { name: "Send", exact: true }).click();
    await shows(one.page, /Refused with status 401/);
    assert.equal(await one.page.locator("#key[open]").count(), 0, "it is the API's key that is missing");
    await one.page.fill("#try-key", "alices-key");
    await one.page.getByRole("button", { name: "Send", exact: true }).click();
    await shows(one.page, /Its way[\s\S]*Headers/);
    await shows(one.page, /Key\s+alice/);
    assert.equal(await one.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]).includes("alices-key")), false);
    assert.deepEqual(one.problems, []);
    await one.close();
  },

  async "colours are chosen and kept"() {
    const one = await open(chromium, URL_OF_PAGE, { scheme: "light" });
    const background = () => one.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await one.page.click("#theme");
    assert.notEqual(await background(), light);
    await one.page.reload();
    assert.notEqual(await background(), light);
    await one.close();
  },

  async "nothing went wrong on the way"() {
    assert.deepEqual(main.problems, []);
  },
};

const failed = await scenarios(CHECKS, process.argv.slice(2));
await chromium.close();
process.exit(failed > 0 ? 1 : 0);
