// Takes the pictures of docs/pictures again, in a few seconds, and some of a page that is broken: the end-to-end tests
// compare both with those of the docs.
//
//   node looks.mjs DIR               (KVASIR_BIN: the kvasir; writes DIR/NAME.png and DIR/NAME, BREAKAGE.png)
//
// Lines and exit as of check.mjs, one for each picture.
import assert from "node:assert/strict";
import { join } from "node:path";
import { browser, eventually, scenarios } from "./browser.mjs";
import { prepare, shoot, SHOTS, stage, stand, under } from "./shots.mjs";

const [DIR] = process.argv.slice(2);
const SAMPLES = 20; // of the charts of the docs' picture

// longer has the charts show as long a time as those of the docs do: what was measured in these few seconds, again and
// again. A page that draws nothing of it draws nothing of two minutes either.
const longer = (page) => page.route("**/api/overview", async (route) => {
  const reply = await route.fetch(), o = await reply.json(), { samples, step_s } = o.series;
  const busy = samples.filter(measured), until = samples.at(-1).t;
  o.series.samples = Array.from({ length: SAMPLES }, (_, i) => ({ ...busy[i % busy.length], t: until - (SAMPLES - 1 - i) * step_s }));
  await route.fulfill({ response: reply, json: o });
});
const measured = ({ ttfb_ms, itl_ms, cache_hits }) => ttfb_ms && itl_ms && cache_hits > 0;
// Each breaks a picture in one way that the comparison has to see; what it gives mends it again.
const styled = (css) => (page) => page.evaluate((text) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}, css);
const BREAKAGES = {
  "no stylesheet": { of: ["overview", "workers", "configuration"], how: (page) => page.evaluate(() => { document.styleSheets[0].disabled = true; }), mend: (page) => page.evaluate(() => { document.styleSheets[0].disabled = false; }) },
  "the other colours": { of: ["overview", "workers"], how: (page, scheme) => page.emulateMedia({ colorScheme: scheme === "dark" ? "light" : "dark" }), mend: (page, scheme) => page.emulateMedia({ colorScheme: scheme }) },
  "a chart is empty": { of: ["overview"], how: styled("figure:nth-of-type(5) path.line { visibility: hidden }") },
  "a chart is gone": { of: ["overview"], how: styled("figure:nth-of-type(2) { display: none }") },
  "a panel is gone": { of: ["overview"], how: styled(".charts + * { display: none }") },
  "a card is gone": { of: ["workers"], how: styled("article:nth-of-type(2) { display: none }") },
  "no rows": { of: ["requests"], how: styled("tbody { visibility: hidden }") },
  "no waterfall": { of: ["request", "try"], how: styled(".waterfall { visibility: hidden }") },
  "no bars": { of: ["decisions"], how: styled(".histogram rect { visibility: hidden }") },
  "no entry": { of: ["cache"], how: styled(".entry { display: none }") },
  "no head": { of: ["configuration"], how: styled(".head { visibility: hidden }") },
};
const mended = (page) => page.evaluate(() => { document.adoptedStyleSheets = []; });

const chromium = await browser(); // first: where there is none, no Kvasir is left behind
const kvasir = await stage(process.env.KVASIR_BIN);
const failed = [], pages = {};
const end = under(kvasir.api, (err) => failed.push(err));
let bad = 1;
try {
  await eventually("two samples have all that charts show", async () => (await (await fetch(`${kvasir.page}api/overview`)).json()).series.samples.filter(measured).length > 1);
  const chosen = await prepare(kvasir);
  await end(); // what was asked is enough, and the browser has the machine for itself
  const checks = {};
  for (const [name, { scheme }] of Object.entries(SHOTS)) {
    checks[name] = async () => {
      const one = pages[scheme] ??= await stand(chromium, kvasir.page, name, longer);
      await shoot(one, name, chosen, join(DIR, `${name}.png`));
      for (const [breakage, { of, how, mend = mended }] of Object.entries(BREAKAGES)) {
        if (!of.includes(name)) continue;
        await how(one.page, scheme);
        await one.page.screenshot({ path: join(DIR, `${name}, ${breakage}.png`) });
        await mend(one.page, scheme);
      }
      assert.deepEqual(one.problems, []);
    };
  }
  bad = await scenarios(checks, []);
} finally {
  await end();
  await chromium.close();
  await kvasir.end();
}
if (failed.length > 0) console.error(`some of the load failed: ${failed[0].message}`);
process.exit(bad > 0 ? 1 : 0);
