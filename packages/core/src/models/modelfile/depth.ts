/** How deep JSON may be nested: what goes through it recursively would run out of stack. */

/** As deep as a request's body. */
export const maxDepth = 128

/** Of objects and arrays in each other. */
export const isDeeper = (value: unknown, levels = maxDepth): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1)))
