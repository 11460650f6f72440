// Server-sent events out of a reply that is read by fetch: EventSource sends no Authorization.

const LONGEST = 8 << 20; // of one event, in characters

// events yields { event, data } of a reply's body, data as text; "ping" for a comment.
export async function* events(reply) {
  const reader = reply.body.getReader(), decoder = new TextDecoder();
  let rest = "", event = "", data = [], ended = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if ((ended = done)) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop();
      if (rest.length > LONGEST) throw new Error("an event is too long");
      for (let line of lines) {
        if (line.endsWith("\r")) line = line.slice(0, -1);
        if (line === "") {
          if (data.length > 0) yield { event: event || "message", data: data.join("\n") };
          [event, data] = ["", []];
        } else if (line.startsWith(":")) {
          yield { event: "ping", data: "" };
        } else {
          const colon = line.indexOf(":");
          const name = colon < 0 ? line : line.slice(0, colon);
          const held = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
          if (name === "event") event = held;
          else if (name === "data") data.push(held);
        }
      }
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => {});
  }
}
