/** The page of `modelmount top`: what a server does now, as text. */
import { humanBytes, shortDuration } from '../format/human.ts'
import { table } from '../format/table.ts'
import { printable } from './printable.ts'
import type { ServedActivity } from './read-activity.ts'

/** @param server address of the server */
export function renderPage(
  server: string,
  { calls, callCount, queues, models }: Omit<ServedActivity, 'replicas'>,
): string {
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0)
  const rate = calls.reduce((sum, { tokensPerSecond }) => sum + tokensPerSecond, 0)
  const head = `${server}  ${callCount} ${callCount === 1 ? 'call' : 'calls'}, ${waiting} in queues, ${rate.toFixed(1)} tokens/s\n`
  const modelRows = models.map((model) => toModelRow(model, queues))
  const callRows = calls.map(toCallRow)
  return [
    head,
    models.length === 0
      ? 'No model is loaded.\n'
      : table([
          ['MODEL', 'RUNS ON', 'ACTIVE', 'WAITING', 'IN QUEUE', 'MEMORY', 'SAVED STATES'],
          ...modelRows,
        ]),
    calls.length === 0
      ? 'No call runs.\n'
      : table([['CALL', 'MODEL', 'PHASE', 'AGE', 'TOKENS/S', 'OUTPUT', 'PROMPT', 'CALLER'], ...callRows]),
    ...(callCount > calls.length ? [`The newest ${callCount - calls.length} calls are not shown.\n`] : []),
  ].join('\n')
}

function toModelRow(
  model: ServedActivity['models'][number],
  queues: ServedActivity['queues'],
): readonly string[] {
  const { name, state, gpuBytes, sizeBytes, activity } = model
  const queued = queues.filter((queue) => queue.model === name).reduce((sum, { waiting }) => sum + waiting, 0)
  const place = gpuBytes === 0 ? 'CPU' : gpuBytes < sizeBytes ? 'CPU and GPU' : 'GPU'
  return [
    printable(name),
    state === 'loading' ? 'loading' : place,
    String(activity?.activeSequences ?? '-'),
    String(activity?.waitingSequences ?? '-'),
    String(queued),
    humanBytes(activity?.memoryBytes ?? sizeBytes),
    activity ? `${activity.cachedStates} (${humanBytes(activity.cachedStateBytes)})` : '-',
  ]
}

const toCallRow = (call: ServedActivity['calls'][number]): readonly string[] => [
  call.id.slice(0, 8),
  printable(call.model),
  call.kind === 'generate' ? call.phase : `${call.phase} (${call.kind})`,
  shortDuration(call.ageMs),
  call.tokensPerSecond.toFixed(1),
  String(call.outputTokens),
  String(call.inputTokens || '-'),
  printable(call.caller ?? 'the app'),
]
