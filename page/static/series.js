// The series of the overview, with what came by the stream since it was fetched.

const KEPT = 180;

// merge adds a sample of the stream to samples of step seconds each. There is one a second, of the
// last step seconds: the one that ends a step stays, those in between stand for it until then.
export function merge(samples, sample, step) {
  const whole = samples.at(-1)?.passing ? samples.slice(0, -1) : samples;
  const since = sample.t - (whole.at(-1)?.t ?? 0);
  if (since <= 0) return samples;
  return [...whole, { ...sample, passing: since < step }].slice(-KEPT - 1);
}
