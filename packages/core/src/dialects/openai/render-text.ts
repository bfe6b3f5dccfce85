/** Renders text completions. Shape: OpenAI API reference, "The completion object". */

import type { Generation } from '../../calls/generation.ts'
import type { PromptToken, TokenUsage } from '../../engine/events.ts'
import { dataFrame } from '../../http/streams.ts'
import { AnswerTimings, renderProgress, timingsOf } from '../answer-progress.ts'
import { type FinishedChoice, mergeChoices, sumUsage } from './choices.ts'
import { clampLogprob, finishReasons, joinFields, toHead, toUsage, usageFrame } from './render.ts'
import { answersPerPrompt, type CompletionRequest } from './schema.ts'

/** Renders a complete response. @param echoes prompt texts to repeat before the completions, empty without `echo` */
export function renderTextCompletion(
  finished: readonly FinishedChoice[],
  echoes: readonly string[],
  body: CompletionRequest,
): object {
  const [{ generation, answer }] = finished as readonly [FinishedChoice]
  const perPrompt = answersPerPrompt(body)
  const choices = echoes.flatMap((echo, prompt) =>
    selectBest(finished.slice(prompt * perPrompt, (prompt + 1) * perPrompt), body.n ?? 1).map(
      ({ answer }) => ({ echo, ...answer }),
    ),
  )
  return {
    ...toHead(generation, 'text_completion', 'cmpl'),
    system_fingerprint: answer.fingerprint,
    choices: choices.map(({ echo, text, promptLogprobs = [], logprobs = [], finishReason }, index) => ({
      text: echo + text,
      index,
      logprobs:
        body.logprobs === undefined ? null : createLogprobFormatter()([...promptLogprobs, ...logprobs]),
      finish_reason: finishReasons[finishReason],
    })),
    usage: toUsage(
      sumUsage(
        finished.map(({ answer }) => answer.usage),
        perPrompt,
      ),
    ),
    ...(body.timings_per_token && { timings: timingsOf(answer) }),
  }
}

/** Returns the answers with the highest mean logprob, best first. Without a choice, keeps their order. */
function selectBest(finished: readonly FinishedChoice[], count: number): readonly FinishedChoice[] {
  if (finished.length === count) return finished
  const meanOf = ({ answer: { logprobs = [] } }: FinishedChoice): number =>
    logprobs.length === 0
      ? Number.NEGATIVE_INFINITY
      : logprobs.reduce((sum, { logprob }) => sum + clampLogprob(logprob), 0) / logprobs.length
  return finished.toSorted((a, b) => compare(meanOf(b), meanOf(a))).slice(0, count)
}

/** Minus infinity minus itself would be NaN. */
const compare = (a: number, b: number): number => (a === b ? 0 : a - b)

/** Frames of a streamed response, prompt by prompt. */
export async function* renderTextChunks(
  prompts: readonly (readonly (Generation | Promise<Generation>)[])[],
  echoes: readonly string[],
  body: CompletionRequest,
): AsyncGenerator<string> {
  const includesUsage = body.stream_options?.include_usage ?? false
  const { n = 1 } = body
  let opening = ''
  let timings = ''
  const usages: TokenUsage[] = []

  for (const [prompt, choices] of prompts.entries()) {
    const formatters = choices.map(createLogprobFormatter)
    const meters = choices.map(() => (body.timings_per_token ? new AnswerTimings() : undefined))
    for await (const { index: choice, event, generation } of mergeChoices(choices)) {
      const index = prompt * n + choice
      const toLogprobs = formatters[choice] as LogprobFormatter
      const measured = meters[choice]?.add(event)
      timings = measured ? joinFields({ timings: measured }) : ''
      // All chunks have the id, date and model of the first completion. Its fingerprint is known when it starts.
      const head = toHead(generation, 'text_completion', 'cmpl')
      if (event.type === 'start')
        opening ||= JSON.stringify({ ...head, system_fingerprint: event.fingerprint }).slice(0, -1)
      const chunk = (text: string, finish: string | null = null, logprobs: object | null = null): string => {
        const choice = JSON.stringify({ text, index, logprobs, finish_reason: finish })
        const extra = event.type === 'progress' ? joinFields(renderProgress(event)) : ''
        const usage = includesUsage ? ',"usage":null' : ''
        const start = opening || JSON.stringify(head).slice(0, -1)
        return dataFrame(`${start},"choices":[${choice}]${usage}${extra}${timings}}`)
      }
      if (event.type === 'start') {
        const echo = echoes[prompt] ?? ''
        if (echo) yield chunk(echo)
      } else if (event.type === 'progress') {
        yield chunk('')
      } else if (event.type === 'prompt') {
        yield chunk('', null, toLogprobs(event.tokens))
      } else if (event.type === 'text') {
        yield chunk(event.text, null, event.logprobs && toLogprobs(event.logprobs))
      } else if (event.type === 'end') {
        yield chunk('', finishReasons[event.finishReason])
        usages[index] = event.usage
      }
    }
  }
  if (includesUsage) yield usageFrame(opening + timings, toUsage(sumUsage(usages, n)))
  yield dataFrame('[DONE]')
}

type LogprobFormatter = ReturnType<typeof createLogprobFormatter>

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
