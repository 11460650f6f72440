// The series of the overview, with what came by the stream since it was fetched.

const KEPT = 180;

// merge adds a sample of the stream to samples of step seconds each. There is one a second, of the
// last step seconds: the one that ends a step stays, those in between stand for it until then.
export function merge(samples, sample, step) {
  const whole = samples.at(-1)?.passing ? samples.slice(0, -1) : samples;
  const since = sample.t - (whole.at(-1)?.t ?? 0);
  if (since < 0) return samples;
  if (since === 0) return [...whole.slice(0, -1), { ...whole.at(-1), in_flight: sample.in_flight, queue: sample.queue }];
  return [...whole, { ...sample, passing: since < step }].slice(-KEPT - 1);
}

// upToNow is the series of an overview with what is under way at this moment: its last sample is up to a step old.
export function upToNow({ series, now, in_flight, queued }) {
  const last = series.samples.at(-1);
  if (!last) return [];
  return merge(series.samples, { ...last, t: Math.floor(Date.parse(now) / 1000), in_flight, queue: queued }, series.step_s);
}
