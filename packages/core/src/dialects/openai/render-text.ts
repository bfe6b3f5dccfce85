/** Renders text completions. Shape: OpenAI API reference, "The completion object". */

import type { Generation } from '../../calls/generation.ts'
import type { GenerateResult, PromptToken } from '../../engine/events.ts'
import { dataFrame } from '../../http/streams.ts'
import { clampLogprob, finishReasons, toHead, toUsage, type UsageCounts, usageFrame } from './render.ts'
import type { CompletionRequest } from './schema.ts'

/** Completion of one prompt. */
export interface TextCompletion {
  readonly generation: Generation
  /** Prompt text to repeat before the completion. Empty without `echo`. */
  readonly echo: string
}

export interface FinishedTextCompletion extends TextCompletion {
  readonly answer: GenerateResult
}

/** Renders a complete response with one choice per prompt. */
export function renderTextCompletion(
  completions: readonly FinishedTextCompletion[],
  body: CompletionRequest,
): object {
  const [first] = completions
  return {
    ...(first && toHead(first.generation, 'text_completion', 'cmpl')),
    system_fingerprint: first?.answer.fingerprint,
    choices: completions.map(
      ({ echo, answer: { text, promptLogprobs = [], logprobs = [], finishReason } }, index) => ({
        text: echo + text,
        index,
        logprobs:
          body.logprobs === undefined ? null : createLogprobFormatter()([...promptLogprobs, ...logprobs]),
        finish_reason: finishReasons[finishReason],
      }),
    ),
    usage: toUsage(completions.reduce((usage, { answer }) => addUsage(usage, answer.usage), noUsage)),
  }
}

/** Frames of a streamed response, prompt by prompt. */
export async function* renderTextChunks(
  completions: AsyncIterable<TextCompletion>,
  body: CompletionRequest,
): AsyncGenerator<string> {
  const includesUsage = body.stream_options?.include_usage ?? false
  let opening = ''
  let usage = noUsage
  let index = 0
  const tail = includesUsage ? ',"usage":null}' : '}'
  const chunk = (text: string, finish: string | null = null, logprobs: object | null = null): string => {
    const choice = JSON.stringify({ text, index, logprobs, finish_reason: finish })
    return dataFrame(`${opening},"choices":[${choice}]${tail}`)
  }

  for await (const { generation, echo } of completions) {
    const toLogprobs = createLogprobFormatter()
    for await (const event of generation) {
      if (event.type === 'start') {
        const common = toHead(generation, 'text_completion', 'cmpl')
        // All chunks have the id, date and model of the first completion.
        opening ||= JSON.stringify({ ...common, system_fingerprint: event.fingerprint }).slice(0, -1)
        if (echo) yield chunk(echo)
      } else if (event.type === 'prompt') {
        yield chunk('', null, toLogprobs(event.tokens))
      } else if (event.type === 'text') {
        yield chunk(event.text, null, event.logprobs && toLogprobs(event.logprobs))
      } else if (event.type === 'end') {
        yield chunk('', finishReasons[event.finishReason])
        usage = addUsage(usage, event.usage)
      }
    }
    index++
  }
  if (includesUsage) yield usageFrame(opening, toUsage(usage))
  yield dataFrame('[DONE]')
}

const noUsage: UsageCounts = { inputTokens: 0, reusedTokens: 0, outputTokens: 0 }

const addUsage = (a: UsageCounts, b: UsageCounts): UsageCounts => ({
  inputTokens: a.inputTokens + b.inputTokens,
  reusedTokens: a.reusedTokens + b.reusedTokens,
  outputTokens: a.outputTokens + b.outputTokens,
})

/** Creates a formatter for logprobs. Text offsets are in code points, and continue from chunk to chunk. */
function createLogprobFormatter(): (tokens: readonly PromptToken[]) => object {
  // A token can end within a character.
  const decoder = new TextDecoder()
  let offset = 0
  const offsetOf = ({ bytes }: PromptToken): number => {
    const start = offset
    offset += [...decoder.decode(Uint8Array.from(bytes), { stream: true })].length
    return start
  }
  return (tokens) => ({
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => (logprob === null ? null : clampLogprob(logprob))),
    top_logprobs: tokens.map(toTopLogprobs),
    text_offset: tokens.map(offsetOf),
  })
}

/** Includes the sampled token. Tokens with the same text share one entry, with the highest logprob. */
function toTopLogprobs({ text, logprob, top }: PromptToken): Readonly<Record<string, number>> | null {
  if (logprob === null) return null
  const found = new Map<string, number>()
  for (const one of [...top, { text, logprob }])
    found.set(one.text, Math.max(clampLogprob(one.logprob), found.get(one.text) ?? -9999))
  return Object.fromEntries(found)
}
