/** The nesting limit of JSON values. Recursive functions could overflow the stack beyond it. */

/** Equals the limit of request bodies. */
export const maxDepth = 128

/** Whether objects and arrays are nested deeper than `levels`. */
export const isDeeperThan = (value: unknown, levels = maxDepth): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeperThan(part, levels - 1)))
