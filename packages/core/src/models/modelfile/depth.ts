/** How deep JSON may be nested: what goes through it recursively would run out of stack. */

/** As deep as a request's body. */
export const maxDepth = 128

/** Of objects and arrays in each other. */
export const isDeeperThan = (value: unknown, levels = maxDepth): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeperThan(part, levels - 1)))
