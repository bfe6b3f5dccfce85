/** Compares two responses as clients see them: status, content type and shape of the body. */
import { readEvents } from '@modelmount/core/testing'
import { type Rules, setDifferences, shapeDifferences } from './shape.ts'

export interface Answer {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: string
}

/** One line per difference. */
export async function differences(recorded: Answer, ours: Answer, rules: Rules): Promise<string[]> {
  if (recorded.status !== ours.status) {
    const line = `status ${ours.status}, recorded ${recorded.status}: ${excerpt(ours.body)}`
    // For a 4xx instead of a 5xx, the body still has to have the recorded shape.
    const isClients = recorded.status >= 500 && Math.floor(ours.status / 100) === 4
    return isClients
      ? [line, ...(await differences({ ...recorded, status: ours.status }, ours, rules))]
      : [line]
  }
  const type = mediaType(ours)
  const recordedType = mediaType(recorded)
  if (recordedType !== type) return [`content type ${type}, recorded ${recordedType}`]
  if (recorded.body === '' || ours.body === '')
    return recorded.body === ours.body ? [] : [`a body ${ours.body === '' ? 'missing' : 'not recorded'}`]
  try {
    return await bodyDifferences(recordedType, recorded.body, ours.body, rules)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return [`a body that is not ${type}: ${excerpt(ours.body)}`]
  }
}

async function bodyDifferences(
  type: string,
  recorded: string,
  ours: string,
  rules: Rules,
): Promise<string[]> {
  switch (type) {
    case 'application/json':
      return shapeDifferences(JSON.parse(recorded), JSON.parse(ours), rules)
    case 'application/x-ndjson':
      return linesDifferences(linesOf(recorded), linesOf(ours), rules)
    case 'text/event-stream':
      return streamDifferences(await eventsOf(recorded), await eventsOf(ours), rules)
    default:
      return []
  }
}

function linesDifferences(recorded: readonly unknown[], ours: readonly unknown[], rules: Rules): string[] {
  if (!recorded.some(hasStatus)) return streamDifferences(recorded, ours, rules)
  const [wanted, found] = [statusesOf(recorded), statusesOf(ours)]
  const inOrder = wanted.join(', ') === found.join(', ')
  return [
    ...(inOrder ? [] : [`statuses ${found.join(', ')}, recorded ${wanted.join(', ')}`]),
    ...ours.flatMap((line) =>
      shapeDifferences(stepOf(line), line, { ...rules, optional: ['total', 'completed'] }),
    ),
  ]
}

const hasStatus = (line: unknown): line is { readonly status: string } =>
  typeof line === 'object' && line !== null && 'status' in line

/**
 * Statuses without transfer progress, whose number depends on time. New and existing layers count as equal,
 * because the recorded server rewrote uploaded files.
 */
function statusesOf(lines: readonly unknown[]): string[] {
  return lines
    .map((line) => (hasStatus(line) ? line.status : 'error'))
    .filter((status) => !transfer.test(status))
    .map((status) => status.replace(/^(creating new|using existing) layer .*$/, 'layer'))
}

const transfer = /^(pulling|pushing) [0-9a-f]{12}$/

/** The expected shape of a progress line. */
function stepOf(line: unknown): unknown {
  if (!hasStatus(line)) return { error: '' }
  return transfer.test(line.status) ? { status: '', digest: '', total: 1, completed: 1 } : { status: '' }
}

/** The number of chunks depends on the model. Their shapes do not. The last chunk has its own shape. */
function streamDifferences(recorded: readonly unknown[], ours: readonly unknown[], rules: Rules): string[] {
  return [
    ...setDifferences(recorded.slice(0, -1), ours.slice(0, -1), rules),
    ...shapeDifferences(recorded.at(-1), ours.at(-1), rules).map((line) => `last ${line}`),
  ]
}

const linesOf = (body: string): unknown[] =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Turns event names into keys, so that the comparison includes them. */
async function eventsOf(body: string): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const { event, data } of readEvents(body)) {
    const value: unknown = data === '[DONE]' ? data : JSON.parse(data)
    events.push(event === undefined ? value : { [event]: value })
  }
  return events
}

const mediaType = ({ contentType }: Answer): string => contentType?.split(';', 1)[0]?.trim() ?? 'none'

const excerpt = (body: string): string => {
  const line = body.replaceAll('\n', ' ')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}
