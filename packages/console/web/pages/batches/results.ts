/** The first results of a batch. Files of results may have gigabytes. */

export interface ResultsPreview {
  /** One JSON text each, without the last one if it is incomplete. */
  readonly lines: readonly string[]
  readonly hasMore: boolean
}

const maxLines = 20
/** A line may be a long answer. */
const maxChars = 200_000

/** Reads the first lines of a stream, and ends it. */
export async function readFirstLines(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<ResultsPreview> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  let isDone = false
  while (!isDone && text.length < maxChars && countLines(text) <= maxLines) {
    const { done, value = '' } = await reader.read()
    text += value
    isDone = done
  }
  if (!isDone) await reader.cancel()
  const all = text.split('\n')
  const complete = (isDone ? all : all.slice(0, -1)).filter((line) => line !== '')
  const lines = complete.slice(0, maxLines)
  return { lines, hasMore: !isDone || complete.length > lines.length }
}

const countLines = (text: string): number => text.split('\n').length - 1

/** A line as indented JSON, or as it is. */
export function prettify(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), null, 2)
  } catch {
    return line
  }
}

/** Name of a result that the client has chosen, in the format of either API. */
export function resultName(line: string, index: number): string {
  try {
    const { custom_id: id } = JSON.parse(line) as { custom_id?: unknown }
    if (typeof id === 'string') return id
  } catch {
    // Shown as it is.
  }
  return `Result ${index + 1}`
}
