// Configuration: each key's value and where it came from, and the last reloads.

import { get, send } from "./api.js";
import { empty, h, panel, put, table, text } from "./dom.js";
import { count, plural, time } from "./format.js";

export function configuration({ confirm, say }) {
  const sum = h("p", { class: "sum" });
  const reload = h("button", { type: "button", onclick: again }, "Reload…");
  const find = h("input", { type: "search", id: "find-key", autocomplete: "off", spellcheck: "false", oninput: draw });
  const from = h("select", { id: "by-source", onchange: draw }, [["", "everywhere"], ["set", "what was set"], ["file", "the file"], ["environment", "the environment"], ["flag", "a flag"], ["default", "defaults"]].map(([value, label]) => h("option", { value }, label)));
  const list = h("div"), reloads = h("div", { class: "held" });
  const node = h("div", { class: "view" }, h("div", { class: "bar-top" }, h("h1", { tabindex: "-1" }, "Configuration"), sum, reload),
    panel("Reloads", reloads),
    h("div", { class: "filters" }, h("label", { class: "find" }, h("span", null, "Find"), find), h("label", null, h("span", null, "From"), from)), list);
  let values = [];

  function draw() {
    const wanted = find.value.trim().toLowerCase();
    const shown = values.filter((v) => (from.value === "" || v.from === from.value || (from.value === "set" && v.from !== "default")) && (wanted === "" || v.key.toLowerCase().includes(wanted) || (!v.secret && JSON.stringify(v.value).toLowerCase().includes(wanted))));
    put(list, shown.length === 0 ? empty("No key is like that.") : h("section", { class: "panel" }, table({
      caption: "Values in force", className: "config", heads: ["Key", "Value", "From"],
      rows: shown.map((v) => [h("code", null, v.key), v.secret && v.value !== "" ? h("span", { class: "dim" }, "hidden") : h("code", { class: "value" }, shownAs(v.value)), [h("span", { class: "pill", "data-tone": v.from === "default" ? "dim" : "info" }, v.from), v.from !== "default" && v.at && h("span", { class: "dim" }, ` ${v.at}`)]]),
    })));
  }

  async function load() {
    const c = await get("api/config");
    values = c.values;
    text(sum, `${c.file} · ${count(values.filter((v) => v.from !== "default").length)} of ${plural(values.length, "key")} set`);
    draw();
    put(reloads, c.reloads.length === 0 ? h("p", { class: "dim" }, "None since the start. A change of the file is taken over by itself.") : table({
      caption: "Reloads", className: "reloads", heads: ["Time", "Taken over", "What it said"],
      rows: c.reloads.map((r) => [time(r.time), h("span", { class: "pill", "data-tone": r.taken ? "ok" : "bad" }, r.taken ? "yes" : "no"), [r.error, r.restart?.length > 0 && `Waits for a restart: ${r.restart.join(", ")}`].filter(Boolean).join(" ") || "–"]),
    }));
  }

  async function again() {
    if (!(await confirm({ title: "Read the configuration again?", text: "Running requests keep what they began with. A file with errors changes nothing.", yes: "Reload" }))) return;
    try {
      await send("POST", "reload");
      say("The configuration was read again.");
    } catch (err) {
      say(err.message, true);
    }
    await load().catch((err) => say(err.message, true));
  }
  return { node, title: () => "Configuration", show: load };
}

const shownAs = (value) => (typeof value === "string" ? (value === "" ? '""' : value) : JSON.stringify(value));
