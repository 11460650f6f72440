// Makes docs/pictures/page-*.png: the page of a real Kvasir whose simulated workers are under load.
//
//   node pictures.mjs [SECONDS]      (of load, default 100; needs bin/kvasir, or the one that KVASIR_BIN names)
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";
import { prepare, shoot, SHOTS, stage, stand, under } from "./shots.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LARGEST = 150_000; // bytes
const SECONDS = Number(process.argv[2] ?? 100);

const chromium = await browser(); // first: where there is none, no Kvasir is left behind
const kvasir = await stage(process.env.KVASIR_BIN ?? join(ROOT, "bin/kvasir"));
const failed = [];
const end = under(kvasir.api, (err) => failed.push(err));
try {
  await new Promise((done) => setTimeout(done, SECONDS * 1000));
  const pages = {};
  for (const [name, { scheme }] of Object.entries(SHOTS)) {
    const path = join(ROOT, "docs/pictures", `page-${name}.png`);
    await shoot(pages[scheme] ??= await stand(chromium, kvasir.page, name), name, await prepare(kvasir), path);
    const { size } = statSync(path);
    console.log(`docs/pictures/page-${name}.png: ${(size / 1024).toFixed(0)} KiB`);
    if (size > LARGEST) throw new Error(`${path} is ${size} bytes, more than ${LARGEST}`);
  }
  for (const err of failed) console.error(`some of the load failed: ${err.message}`); // the pictures show what there was
} finally {
  await end();
  await chromium.close();
  await kvasir.end();
}
