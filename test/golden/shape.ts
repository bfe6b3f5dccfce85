/** Compares the shape of two JSON values: keys and types, not values. */

export interface Rules {
  /** Forbids additional keys, and values where `null` was recorded. */
  readonly exact: boolean
  /** Paths of optional keys: `message.thinking`, `models[].size`. */
  readonly optional?: readonly string[]
  /** Paths of objects whose keys are data. */
  readonly maps?: readonly string[]
  /** Paths of lists that can be empty. */
  readonly mayBeEmpty?: readonly string[]
}

/** One line per difference, with its path. */
export function shapeDifferences(recorded: unknown, ours: unknown, rules: Rules, path = ''): string[] {
  if (recorded === null && !rules.exact) return []
  if (typeOf(recorded) !== typeOf(ours))
    return [`${path || 'body'}: ${typeOf(ours)}, recorded ${typeOf(recorded)}`]
  if (Array.isArray(recorded) && Array.isArray(ours)) return listDifferences(recorded, ours, rules, path)
  if (isObject(recorded) && isObject(ours) && !rules.maps?.includes(path))
    return keyDifferences(recorded, ours, rules, path)
  return []
}

/** Differences between the sets of shapes of two lists. */
export function setDifferences(
  recorded: readonly unknown[],
  ours: readonly unknown[],
  rules: Rules,
): string[] {
  const missing = recorded.flatMap((one) => nearest(ours, (other) => shapeDifferences(one, other, rules)))
  const added = ours.flatMap((one) => nearest(recorded, (other) => shapeDifferences(other, one, rules)))
  return [...new Set([...missing, ...(rules.exact ? added : [])])]
}

function keyDifferences(
  recorded: Record<string, unknown>,
  ours: Record<string, unknown>,
  rules: Rules,
  path: string,
): string[] {
  const pathOf = (key: string): string => (path === '' ? key : `${path}.${key}`)
  const isRequired = (key: string): boolean => !rules.optional?.includes(pathOf(key))
  return [
    ...Object.entries(recorded).flatMap(([key, value]) => {
      if (Object.hasOwn(ours, key)) return shapeDifferences(value, ours[key], rules, pathOf(key))
      return isRequired(key) ? [`${pathOf(key)}: missing`] : []
    }),
    ...Object.keys(ours)
      .filter((key) => rules.exact && !Object.hasOwn(recorded, key) && isRequired(key))
      .map((key) => `${pathOf(key)}: not recorded`),
  ]
}

/** Differences of our elements from all recorded shapes. The number of elements may differ. */
function listDifferences(
  recorded: readonly unknown[],
  ours: readonly unknown[],
  rules: Rules,
  path: string,
): string[] {
  if (recorded.length === 0 || ours.length === 0) {
    const areAlike = recorded.length === ours.length || rules.mayBeEmpty?.includes(path)
    return areAlike ? [] : [`${path}: ${ours.length} elements, recorded ${recorded.length}`]
  }
  const found = ours.flatMap((one) =>
    nearest(recorded, (other) => shapeDifferences(other, one, rules, `${path}[]`)),
  )
  return [...new Set(found)]
}

/** Differences from the closest candidate. */
function nearest(candidates: readonly unknown[], compare: (candidate: unknown) => string[]): string[] {
  let fewest: string[] | undefined
  for (const candidate of candidates) {
    const found = compare(candidate)
    if (found.length === 0) return []
    if (!fewest || found.length < fewest.length) fewest = found
  }
  return fewest ?? ['nothing to compare with']
}

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value

const isObject = (value: unknown): value is Record<string, unknown> => typeOf(value) === 'object'
