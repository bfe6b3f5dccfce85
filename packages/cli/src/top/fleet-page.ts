/** The page of `modelmount fleet`: the replicas of a server, as text. */
import { shortDuration } from '../format/human.ts'
import { table } from '../format/table.ts'
import { printable } from './printable.ts'
import type { ServedActivity, ServedReplica } from './read-activity.ts'

/** @param server address of the server */
export function renderFleet(
  server: string,
  { replicas }: Pick<ServedActivity, 'replicas'>,
  now = Date.now(),
): string {
  if (replicas.length === 0)
    return `${server}  no replicas\n\nReplicas appear with the first call of a fleet: modelmount serve --upstream gpu=URL,URL\n`
  const ready = replicas.filter(({ state }) => state === 'ready').length
  const running = replicas.reduce((sum, { runningCalls }) => sum + runningCalls, 0)
  return [
    `${server}  ${ready} of ${replicas.length} replicas ready, ${running} running ${running === 1 ? 'call' : 'calls'}\n`,
    table([
      [
        ...['ENGINE', 'REPLICA', 'STATE', 'RUNNING', 'TOKENS LEFT', 'CALLS', 'FAILED'],
        ...['CACHED', 'EJECTIONS', 'LAST FAILURE'],
      ],
      ...replicas.map((replica) => toRow(replica, now)),
    ]),
  ].join('\n')
}

function toRow(replica: ServedReplica, now: number): readonly string[] {
  const { engine, url, state, runningCalls, outstandingTokens, calls, failedCalls } = replica
  const { inputTokens, cachedTokens, ejections, lastFailure } = replica
  return [
    printable(engine ?? '-'),
    printable(url),
    state,
    String(runningCalls),
    String(Math.round(outstandingTokens)),
    String(calls),
    String(failedCalls),
    inputTokens === 0 ? '-' : `${Math.round((100 * cachedTokens) / inputTokens)} %`,
    String(ejections),
    lastFailure
      ? `${lastFailure.kind}, ${shortDuration(Math.max(0, now - Date.parse(lastFailure.at)))} ago`
      : '-',
  ]
}
