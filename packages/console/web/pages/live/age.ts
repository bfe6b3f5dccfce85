/** Age in whole seconds, in ms, so that all rows change together. */
export const toAge = (startedMs: number, now: number): number =>
  Math.max(0, Math.floor((now - startedMs) / 1_000) * 1_000)
