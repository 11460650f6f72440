// Elements. Data reaches the page as text alone: nothing here, nor anywhere else, parses it as HTML.

const SVG = "http://www.w3.org/2000/svg";

// h makes an element: h("button", { class: "main", onclick: f }, "Send"). A child is a node, a text,
// or nothing (null, undefined, false).
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

// s is h for SVG.
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(el, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : value);
  }
  add(el, children);
  return el;
}

function add(el, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    el.append(child);
  }
}

// put replaces what an element has.
export function put(el, ...children) {
  el.replaceChildren();
  add(el, children);
}

// text sets an element's text, if it is another one: a browser lays out again whatever was set.
export function text(el, value) {
  value = String(value);
  if (el.textContent !== value) el.textContent = value;
}

// attr sets an attribute, if it is another one.
export function attr(el, name, value) {
  if (el.getAttribute(name) !== value) el.setAttribute(name, value);
}

// width sets how much of its parent an element fills, from 0 to 1. By CSSOM: a style in an attribute
// would need a laxer Content-Security-Policy.
export function width(el, share) {
  el.style.width = `${(Math.max(0, Math.min(1, share || 0)) * 100).toFixed(2)}%`;
}

// facts is a list of names and values; a value of undefined is left out.
export function facts(pairs, className = "facts") {
  return h("dl", { class: className }, pairs.filter(([, value]) => value !== undefined && value !== "" && value !== null)
    .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

// table has a caption, headings and rows of cells. heads are texts, or [text, class].
export function table({ caption, heads, rows, className = "" }) {
  const classes = heads.map((head) => (Array.isArray(head) ? head[1] : ""));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: className },
      h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", null, heads.map((head, i) => h("th", { scope: "col", class: classes[i] || null }, Array.isArray(head) ? head[0] : head)))),
      h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell, i) => h("td", { class: classes[i] || null }, cell)))))));
}

export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h2", null, title), ...children);
}

export function empty(...children) {
  return h("p", { class: "empty" }, ...children);
}
