/** The nesting limit of JSON: recursive functions would overflow the stack. */

/** Equals the limit of request bodies. */
export const maxDepth = 128

/** Counts nested objects and arrays. */
export const isDeeperThan = (value: unknown, levels = maxDepth): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeperThan(part, levels - 1)))
