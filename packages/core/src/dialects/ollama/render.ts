/**
 * From neutral events to the Ollama API.
 * Shape: Ollama API reference, "Generate a response" and "Generate a chat message".
 */
import type { Answer, FinishReason } from '../../engine/events.ts'
import type { Generation } from '../../generate.ts'
import { jsonLine } from '../../http/streams.ts'

/** What a piece of an answer is called: `response` in one route, `message` in the other. */
export type Piece = (text: string, thinking?: string) => object

/** Without thoughts the key is left out: clients take an empty one for an answer without text. */
export const asMessage: Piece = (content, thinking = '') => ({
  message: { role: 'assistant', content, ...(thinking !== '' && { thinking }) },
})
export const asResponse: Piece = (response, thinking = '') => ({
  response,
  ...(thinking !== '' && { thinking }),
})

/** A whole answer. */
export const completion = (
  { model }: Pick<Generation, 'model'>,
  answer: Answer,
  startedAt: number,
  piece: Piece,
): object => ({ ...head(model), ...piece(answer.text, answer.reasoning), ...ending(answer, startedAt) })

/** The lines of a streamed answer. */
export async function* lines(
  generation: Generation,
  startedAt: number,
  piece: Piece,
): AsyncGenerator<string> {
  const { model } = generation
  for await (const event of generation) {
    if (event.type === 'text') yield line(model, piece(event.text))
    else if (event.type === 'reasoning') yield line(model, piece('', event.text))
    else if (event.type === 'end')
      yield jsonLine({ ...head(model), ...piece(''), ...ending(event, startedAt) })
  }
}

/** A piece that says nothing. There is no other line that breaks a silence and disturbs no client. */
export const heartbeat = (model: string, piece: Piece): string => line(model, piece(''))

/** That a model was loaded or let go: always one object, even where a stream was asked for. */
export const acknowledgement = (model: string, reason: 'load' | 'unload', piece: Piece): object => ({
  ...head(model),
  ...piece(''),
  done: true,
  done_reason: reason,
})

/** The prompt, instead of an answer. */
export const rendered = (model: string, prompt: string, piece: Piece): object => ({
  ...head(model),
  ...piece(''),
  done: false,
  _debug_info: { rendered_template: prompt },
})

const line = (model: string, piece: object): string => jsonLine({ ...head(model), ...piece, done: false })

const head = (model: string) => ({ model, created_at: new Date().toISOString() })

/** Counts and durations stand in the last line only: clients add them up. */
const ending = (
  { reason, usage, timings, tokens }: Pick<Answer, 'reason' | 'usage' | 'timings' | 'tokens'>,
  startedAt: number,
) => ({
  done: true,
  done_reason: doneReasons[reason],
  ...(tokens && { context: tokens }),
  total_duration: nanoseconds(performance.now() - startedAt),
  load_duration: nanoseconds(timings.loadMs),
  prompt_eval_count: usage.inputTokens,
  prompt_eval_duration: nanoseconds(timings.promptMs),
  eval_count: usage.outputTokens,
  eval_duration: nanoseconds(timings.generateMs),
})

const doneReasons = {
  stop: 'stop',
  length: 'length',
  context: 'length',
  'tool-calls': 'stop',
} as const satisfies Record<FinishReason, string>

/** Never none: clients divide by them. */
const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms * 1e6))
