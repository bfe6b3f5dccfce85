/** What has changed in the running calls, for a reader that has seen an earlier list. */
import type { RunningCall, RunningCallList } from './call-directory.ts'

export interface CallChanges {
  readonly changed: readonly RunningCall[]
  /** Ids of calls that run no more. */
  readonly ended: readonly string[]
}

/**
 * Yields the list, and then its changes, each second with some.
 *
 * @param isOver whether the reader should get no more
 */
export async function* watchCalls(
  calls: { list(): Promise<RunningCallList>; next(): Promise<RunningCallList> },
  isOver: () => boolean,
): AsyncGenerator<RunningCallList | CallChanges> {
  const first = await calls.list()
  yield first
  for (let seen = first.data; !isOver(); ) {
    const { data } = await calls.next()
    const changes = compare(seen, data)
    seen = data
    if (!isOver() && changes.changed.length + changes.ended.length > 0) yield changes
  }
}

function compare(before: readonly RunningCall[], after: readonly RunningCall[]): CallChanges {
  const states = new Map(before.map((call) => [call.id, stateOf(call)]))
  const ids = new Set(after.map(({ id }) => id))
  return {
    changed: after.filter((call) => states.get(call.id) !== stateOf(call)),
    ended: before.flatMap(({ id }) => (ids.has(id) ? [] : [id])),
  }
}

/** The age changes all the time. The reader has a clock. */
const stateOf = ({ ageMs: _, ...call }: RunningCall): string => JSON.stringify(call)
