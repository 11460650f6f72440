// Numbers, times and sizes as people read them.

export const NONE = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const known = (n) => typeof n === "number" && Number.isFinite(n);

// count is a whole number: 1,204, 12.3k, 4.5M.
export function count(n) {
  if (!known(n)) return NONE;
  const size = Math.abs(n);
  if (size < 10_000) return whole.format(n);
  if (size < 1e6) return `${(n / 1e3).toFixed(size < 1e5 ? 1 : 0)}k`;
  if (size < 1e9) return `${(n / 1e6).toFixed(size < 1e8 ? 1 : 0)}M`;
  return `${(n / 1e9).toFixed(1)}G`;
}

// decimal has three figures or so.
export function decimal(n) {
  if (!known(n)) return NONE;
  const size = Math.abs(n);
  if (size >= 1000) return count(n);
  return n.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size === 0 ? 0 : 2);
}

// rate is so many a second.
export function rate(n) {
  if (!known(n)) return NONE;
  return n >= 100 ? count(n) : n.toFixed(n === 0 ? 0 : 1);
}

// ms is a duration that is given in milliseconds.
export function ms(n) {
  if (!known(n)) return NONE;
  if (n < 0) return `-${ms(-n)}`;
  if (n === 0) return "0 ms";
  if (n < 0.0995) return `${Math.max(1, n * 1000).toFixed(0)} µs`;
  if (n < 1) return `${n.toFixed(2)} ms`;
  if (n < 10) return `${n.toFixed(1)} ms`;
  if (n < 1000) return `${n.toFixed(0)} ms`;
  if (n < 60_000) return `${(n / 1000).toFixed(n < 10_000 ? 2 : 1)} s`;
  return span(n);
}

// span is a long duration in milliseconds: 3 h 12 min.
export function span(n) {
  if (!known(n)) return NONE;
  const seconds = Math.max(0, Math.floor(n / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

export function bytes(n) {
  if (!known(n)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) [n, i] = [n / 1024, i + 1];
  return `${i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)} ${units[i]}`;
}

export const percent = (share) => (known(share) ? `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %` : NONE);

export const score = (n) => (known(n) ? n.toFixed(2) : NONE);

function date(value) {
  const at = new Date(typeof value === "number" ? value * 1000 : value);
  return Number.isNaN(at.getTime()) ? null : at;
}

// time is the time of day; of another day, that too.
export function time(value) {
  const at = date(value);
  if (!at) return NONE;
  return (at.toDateString() === new Date().toDateString() ? clock : day).format(at);
}

export function since(value, now = Date.now()) {
  const at = date(value);
  return at ? span(now - at) : NONE;
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
