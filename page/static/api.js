// Asking the admin listener, with its key where it wants one.

const STORED = "kvasir-admin-key";

// A Problem is an answer that is no success, in the words of whoever gave it.
export class Problem extends Error {
  constructor(status, message, code) {
    super(message);
    Object.assign(this, { status, code });
  }
}

let key = "";
try {
  key = sessionStorage.getItem(STORED) ?? "";
} catch {
  // Storage is off: the key is asked for again when the page is loaded again.
}

// askForKey is set by the page: a promise of a key, or of null where the reader gave none.
let askForKey = async () => null;
let asking = null, declined = false;
export function keysComeFrom(ask) {
  askForKey = ask;
}

// askAgain asks for a key again, although the reader gave none before.
export function askAgain() {
  declined = false;
}

// ask is fetch of a path below the page's own, so that a prefix in front of it stays. After a 401
// it asks for a key and tries again.
export async function ask(path, { headers, ...options } = {}) {
  for (;;) {
    const used = key;
    const all = new Headers(headers);
    if (used) all.set("Authorization", `Bearer ${used}`);
    const reply = await fetch(new URL(path, document.baseURI), { cache: "no-store", credentials: "same-origin", ...options, headers: all });
    if (reply.status !== 401 || reply.headers.has("x-request-id")) return reply; // with an id it is the API's answer, and about the API's key
    await reply.body?.cancel();
    if (used === key) await newKey(used !== "");
  }
}

// newKey asks once, however many wait for it.
async function newKey(wrong) {
  if (!declined) asking ??= askForKey(wrong).finally(() => (asking = null));
  const given = await asking;
  declined = given === null;
  if (declined) throw new Problem(401, "The admin key is missing.", "no_key");
  key = given;
  try {
    sessionStorage.setItem(STORED, given);
  } catch {
    // It is asked for again.
  }
}

// get is the JSON at a path.
export const get = (path, options) => send("GET", path, undefined, options);

// send is the JSON that a request with this method is answered by.
export async function send(method, path, body, options = {}) {
  const headers = new Headers(options.headers);
  if (method !== "GET") headers.set("X-Kvasir-Admin", "1");
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const reply = await ask(path, { ...options, method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!reply.ok) throw await problemOf(reply);
  return reply.json();
}

// problemOf reads an error in OpenAI's shape, or says what came instead.
export async function problemOf(reply) {
  const said = await reply.text().catch(() => "");
  try {
    const { error } = JSON.parse(said);
    if (typeof error?.message === "string") return new Problem(reply.status, error.message, error.code);
  } catch {
    // Not JSON.
  }
  return new Problem(reply.status, said.slice(0, 300) || `HTTP ${reply.status}`);
}

// query makes ?a=b of what is set.
export function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}
