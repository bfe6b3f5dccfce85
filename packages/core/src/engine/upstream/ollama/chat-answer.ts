/** Turns lines of the Ollama API into pieces. Shape: Ollama API reference. */
import { randomUUID } from 'node:crypto'
import { isRecord } from '../../../util/is-record.ts'
import type { SampledToken } from '../../events.ts'
import { areTokens } from '../../request-limits.ts'
import {
  parseRecord,
  readArray,
  readCount,
  readOptionalString,
  readRecord,
  readString,
} from '../response-fields.ts'
import type { AnswerPiece, AnswerReader } from '../upstream-api.ts'
import { invalidResponse, toInBandError } from '../upstream-errors.ts'
import { readLogprobs } from './logprobs.ts'

/** Reads the lines of both routes: `/api/chat` has its content in `message`, `/api/generate` in `response`. */
export class LineReader implements AnswerReader<string> {
  readonly #model: string

  /** @param model name that the caller asked for */
  constructor(model: string) {
    this.#model = model
  }

  read(line: string): readonly AnswerPiece[] {
    const body = parseRecord(line)
    if (body.error !== undefined) throw toInBandError(body.error, this.#model)
    const message = isRecord(body.message) ? body.message : undefined
    const pieces = toContent(
      readOptionalString(message ? message.content : body.response, 'the text') ?? '',
      readOptionalString(message ? message.thinking : body.thinking, '`thinking`') ?? '',
      body.logprobs === undefined ? undefined : readLogprobs(body.logprobs),
    )
    const calls = message?.tool_calls ?? body.tool_calls
    if (calls) pieces.push(...readArray(calls, '`tool_calls`').flatMap(toCall))
    if (body.done === true) pieces.push(toEnd(body))
    return pieces
  }
}

/** The logprobs of a line belong to its text. A line may have only logprobs, while the server holds text back. */
function toContent(
  text: string,
  thinking: string,
  logprobs: readonly SampledToken[] | undefined,
): AnswerPiece[] {
  const counted = logprobs && { logprobs, tokens: logprobs.length }
  if (text === '' && thinking === '') return logprobs?.length ? [{ type: 'text', text, ...counted }] : []
  return [
    ...(thinking === '' ? [] : [{ type: 'reasoning', text: thinking, ...(text === '' && counted) } as const]),
    ...(text === '' ? [] : [{ type: 'text', text, ...counted } as const]),
  ]
}

/** A call arrives as a whole. Older servers give it no id. */
function toCall(value: unknown): readonly AnswerPiece[] {
  const { id, function: called } = readRecord(value, 'a tool call')
  const { name, arguments: values } = readRecord(called, 'the function of a tool call')
  const json = JSON.stringify(readRecord(values ?? {}, 'the arguments of a tool call'))
  return [
    {
      type: 'tool-call',
      id: readOptionalString(id, 'the id of a tool call') || `call_${randomUUID()}`,
      name: readString(name, 'the name of a tool'),
    },
    { type: 'tool-arguments', json, tokens: Math.ceil(json.length / charactersPerToken) },
  ]
}

/** An estimate. The count at the end replaces it. */
const charactersPerToken = 4

function toEnd(body: Record<string, unknown>): AnswerPiece {
  const { context } = body
  if (context !== undefined && !areTokens(context)) throw invalidResponse('`context` is no list of tokens')
  return {
    type: 'end',
    finishReason: body.done_reason === 'length' ? 'length' : 'stop',
    usage: {
      inputTokens: readCount(body.prompt_eval_count, '`prompt_eval_count`'),
      outputTokens: readCount(body.eval_count, '`eval_count`'),
    },
    tokens: context,
  }
}
