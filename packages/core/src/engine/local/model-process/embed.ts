/** Texts into vectors and ranks: as many side by side as there are contexts, and each told as soon as it is read. */
import type { Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../errors.ts'
import { sideBySide } from '../../../util/side-by-side.ts'
import type { EmbedRequest, RerankRequest } from '../../embeddings.ts'
import { type Result, toFloats } from '../ipc/protocol.ts'
import type { Reader, Reading } from './llama/pooling-contexts.ts'
import type { Binding } from './model.ts'
import { known } from './prompt/prompt.ts'
import type { Work } from './run-request.ts'
import { withSpecial } from './tokenize-requests.ts'

type Say = (result: Result) => void
type Text = readonly Token[]

/** Ends quietly when the signal aborts. */
export async function embed(request: EmbedRequest, work: Work, say: Say): Promise<void> {
  const { inputs, overflow = 'error', dimensions } = request
  const { model } = work
  const { pool, room } = readingOf(model, 'vectors')
  for (const [index, input] of inputs.entries())
    if (typeof input !== 'string') known(input, model, nameOf('inputs', index))

  await sideBySide(inputs, atATime(pool), work.signal, async (input, index, signal) => {
    const name = nameOf('inputs', index)
    const enough = overflow === 'truncate' ? room : undefined
    const given =
      typeof input === 'string'
        ? await tooLongFor(name, room, model.tokenize(input, signal, { enough }))
        : known(input, model, name)
    const whole = withSpecial(given, model)
    if (whole.length === 0 && !signal.aborted) throw invalidRequest(`'${name}' is empty.`, { param: name })
    if (whole.length > room && enough === undefined) throw tooLong(name, whole.length, room)
    const text = cut(whole, room, model)
    const vector = await read(work, signal, (reader) => reader(text))
    if (vector) say({ index, vector: toFloats(unit(vector, dimensions)), inputTokens: text.length })
  })
}

/** Ends quietly when the signal aborts. */
export async function rerank(request: RerankRequest, work: Work, say: Say): Promise<void> {
  const { documents, overflow = 'error' } = request
  const { model, signal } = work
  const { pool, room, lengthOf } = readingOf(model, 'ranks')
  const query = await tooLongFor('query', room, model.tokenize(request.query, signal, { isPlain: true }))
  const around = lengthOf(query, [])
  if (around >= room) throw tooLong('query', around, room)

  await sideBySide(documents, atATime(pool), signal, async (text, index, signal) => {
    const name = nameOf('documents', index)
    const enough = overflow === 'truncate' ? room : undefined
    const whole = await tooLongFor(name, room, model.tokenize(text, signal, { isPlain: true, enough }))
    const excess = Math.max(0, lengthOf(query, whole) - room)
    if (excess > 0 && enough === undefined) throw tooLong(name, lengthOf(query, whole), room)
    const document = whole.slice(0, whole.length - excess)
    const rank = await read(work, signal, (reader) => reader(query, document))
    if (rank) say({ index, vector: toFloats(rank), inputTokens: lengthOf(query, document) })
  })
}

/** One more than there are contexts: its tokens are made meanwhile. */
const atATime = ({ size }: Reading['pool']): number => size + 1

function readingOf({ name, reading }: Binding, makes: Reading['makes']): Reading {
  if (reading?.makes === makes) return reading
  const what = makes === 'ranks' ? 'rank documents' : 'make embeddings'
  throw invalidRequest(`The model "${name}" cannot ${what}.`, { param: 'model' })
}

/** Nothing where the caller has left before its turn. */
async function read(
  { model, progress, tenant, background }: Work,
  signal: AbortSignal,
  work: (reader: Reader) => Promise<ArrayLike<number>>,
): Promise<readonly number[] | undefined> {
  const found = await model.reading?.pool.with({ tenant, background, signal }, work)
  progress.steps++
  if (!found) return undefined
  const numbers = Array.from(found)
  if (numbers.every(Number.isFinite)) return numbers
  throw new LlmError('upstream', `The model "${model.name}" makes no numbers of this text.`)
}

/** The end goes, but not the token that every text of this model ends with. */
function cut(text: Text, room: number, { end }: Pick<Binding, 'end'>): Text {
  if (text.length <= room) return text
  return end === undefined ? text.slice(0, room) : [...text.slice(0, room - 1), end]
}

/** Of length 1; one without any length stays as it is. */
function unit(vector: readonly number[], dimensions = vector.length): readonly number[] {
  const first = vector.slice(0, dimensions)
  const length = Math.sqrt(first.reduce((sum, value) => sum + value * value, 0))
  return length > 0 ? first.map((value) => value / length) : first
}

const nameOf = (field: string, index: number): string => `${field}[${index}]`

/** The tokenizer speaks of a prompt and its answer. */
async function tooLongFor(param: string, room: number, tokens: Promise<Text>): Promise<Text> {
  return tokens.catch((cause: unknown) => {
    const { code, details } = LlmError.from(cause)
    throw code === 'context_length' ? tooLong(param, details.inputTokens ?? 0, room) : cause
  })
}

const tooLong = (param: string, inputTokens: number, contextSize: number): LlmError =>
  new LlmError(
    'context_length',
    `'${param}' has ${inputTokens} tokens, and the model reads ${contextSize} at most.`,
    { param, inputTokens, contextSize },
  )
