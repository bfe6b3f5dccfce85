import type { FairClock } from './fair-clock.ts'
import { isUnfinished, type RunningSequence } from './running-sequence.ts'

/** Sequences that are decoded in one step. */
type StepGroup = readonly RunningSequence[]

interface Turn {
  readonly group: StepGroup
  /** Sequence of the tenant whose turn it is. */
  readonly leader: RunningSequence
}

/**
 * A tenant is next, whatever it has used, when it has waited for this many times the duration of its last step.
 * Otherwise, a stream would wait while each of many tenants in another group uses as much time. Costly steps, such as
 * with a large grammar, are due less often.
 */
const maxWaitPerStep = 8
/** Minimum of that wait, in ms. */
const minWaitMs = 200

/**
 * Selects the next decode step of a round. The tenant that has used the least time is next. Of its groups, the
 * one that has waited longest takes the step, and the sequences of other tenants in the group decode along. So
 * a tenant with many separate steps does not slow the others. The round ends when all groups of the tenant
 * have had their step.
 */
export function selectTurn(
  groups: readonly StepGroup[],
  hasRun: ReadonlySet<StepGroup>,
  clock: FairClock,
): Turn | undefined {
  const turns = groups.flatMap((group) => group.filter(isUnfinished).map((leader) => ({ group, leader })))
  clock.setCompetitors(turns.map(({ leader }) => leader.job))
  const overdue = listOverdue(turns)
  const compare = (a: Turn, b: Turn): number =>
    Number(overdue.has(b.leader.job.tenant)) - Number(overdue.has(a.leader.job.tenant)) ||
    clock.timeOf(a.leader.job.tenant) - clock.timeOf(b.leader.job.tenant) ||
    Number(hasRun.has(a.group)) - Number(hasRun.has(b.group)) ||
    a.leader.sampledAt - b.leader.sampledAt
  const next = turns.reduce<Turn | undefined>(
    (best, turn) => (best && compare(best, turn) <= 0 ? best : turn),
    undefined,
  )
  return next && !hasRun.has(next.group) ? next : undefined
}

/** Tenants of which all sequences have waited for too long. */
function listOverdue(turns: readonly Turn[]): ReadonlySet<string> {
  const now = performance.now()
  const isOverdue = ({ leader: { sampledAt, stepMs } }: Turn): boolean =>
    now - sampledAt >= Math.max(minWaitMs, maxWaitPerStep * stepMs)
  const overdue = new Set<string>()
  for (const turn of turns) if (isOverdue(turn)) overdue.add(turn.leader.job.tenant)
  for (const turn of turns) if (!isOverdue(turn)) overdue.delete(turn.leader.job.tenant)
  return overdue
}
