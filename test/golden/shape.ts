/** Whether two JSON values have the same shape: the same keys with the same types, whatever the values are. */

export interface Rules {
  /** Ours has no other keys than the recorded value. Else it may, and may have a value where `null` was recorded. */
  readonly exact: boolean
  /** Keys that may be there or not, as paths: `message.thinking`, `models[].size`. */
  readonly optional?: readonly string[]
  /** Paths of objects whose keys are data. */
  readonly maps?: readonly string[]
  /** Paths of lists that are empty at one moment and not at another. */
  readonly mayBeEmpty?: readonly string[]
}

/** A line for each difference, by its path; none when the shapes are equal. */
export function shapeDifferences(recorded: unknown, ours: unknown, rules: Rules, path = ''): string[] {
  if (recorded === null && !rules.exact) return []
  if (typeOf(recorded) !== typeOf(ours))
    return [`${path || 'body'}: ${typeOf(ours)}, recorded ${typeOf(recorded)}`]
  if (Array.isArray(recorded) && Array.isArray(ours)) return listDifferences(recorded, ours, rules, path)
  if (isObject(recorded) && isObject(ours) && !rules.maps?.includes(path))
    return keyDifferences(recorded, ours, rules, path)
  return []
}

/** Both have each other's shapes, how often and in which order does not matter. */
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

/** Each thing in our list is like one that was recorded: how many there are, and of which kinds, depends on the moment. */
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

/** The differences from the candidate that has the fewest. */
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
