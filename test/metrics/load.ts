/** Generates load: clients that send one call after the other, and measure what they see of each. */
import { post } from '../support/served.ts'

export interface MeasuredCall {
  readonly route: string
  readonly isStream: boolean
  /** From before the request to after the last byte of the answer. */
  readonly durationMs: number
  /** To the first part of the answer with text. Undefined without a stream. */
  readonly firstTokenMs: number | undefined
  readonly inputTokens: number
  readonly outputTokens: number
}

interface Kind {
  readonly route: string
  readonly isStream: boolean
  body(prompt: string, maxTokens: number): object
  /** Matches the first text in a stream. */
  readonly text: RegExp
  /** Match the last usage of an answer. */
  readonly input: RegExp
  readonly output: RegExp
}

/** Of an answer, or of the thoughts before it. */
const firstText = /"(?:content|reasoning_content|thinking)":"[^"]/
const openAi = { route: '/v1/chat/completions', text: firstText }
const usage = { input: /"(?:prompt|input)_tokens":(\d+)/g, output: /"(?:completion|output)_tokens":(\d+)/g }

const kinds: readonly Kind[] = [
  {
    ...{ ...openAi, ...usage, isStream: true },
    body: (prompt, max_tokens) => ({
      ...{ ...chat(prompt), max_tokens, stream: true },
      stream_options: { include_usage: true },
    }),
  },
  {
    ...{ route: '/v1/messages', isStream: false, text: /^$/, ...usage },
    // Of another model, so that the metrics of streams have labels of their own.
    body: (prompt, max_tokens) => ({ ...chat(prompt, 'plain'), max_tokens }),
  },
  {
    ...{ route: '/api/chat', isStream: true, text: firstText },
    ...{ input: /"prompt_eval_count":(\d+)/g, output: /"eval_count":(\d+)/g },
    body: (prompt, num_predict) => ({ ...chat(prompt), options: { num_predict } }),
  },
]

const chat = (content: string, model = 'tiny') => ({ model, messages: [{ role: 'user', content }] })

/** Runs calls of all kinds until the time is over, and resolves when the last one has ended. */
export class LoadGenerator {
  readonly #url: string
  #count = 0

  constructor(url: string) {
    this.#url = url
  }

  async run(clients: number, seconds: number): Promise<readonly MeasuredCall[]> {
    const end = performance.now() + seconds * 1_000
    const calls: MeasuredCall[] = []
    const client = async () => {
      while (performance.now() < end) calls.push(await measure(this.#url, this.#count++))
    }
    await Promise.all(Array.from({ length: clients }, client))
    return calls
  }
}

async function measure(url: string, index: number): Promise<MeasuredCall> {
  const kind = kinds[index % kinds.length] as Kind
  // The number comes first, so that no call reuses the prompt of another one.
  const prompt = `Number ${index}. ${'Tell me a long story about the sea. '.repeat(20 + (index % 7) * 20)}`
  const startedAt = performance.now()
  const response = await post(url + kind.route, kind.body(prompt, 150 + (index % 5) * 60))
  const { text, firstTextAt } = await readAnswer(response, kind.text)
  const endedAt = performance.now()
  if (!response.ok) throw new Error(`${kind.route}: ${response.status} ${text}`)
  return {
    ...{ route: kind.route, isStream: kind.isStream, durationMs: endedAt - startedAt },
    firstTokenMs: kind.isStream ? (firstTextAt ?? endedAt) - startedAt : undefined,
    ...{ inputTokens: lastNumber(text, kind.input), outputTokens: lastNumber(text, kind.output) },
  }
}

async function readAnswer(response: Response, first: RegExp) {
  const decoder = new TextDecoder()
  let text = ''
  let firstTextAt: number | undefined
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (firstTextAt === undefined && first.test(text)) firstTextAt = performance.now()
  }
  return { text, firstTextAt }
}

const lastNumber = (text: string, pattern: RegExp): number => Number([...text.matchAll(pattern)].at(-1)?.[1])

export const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** The smallest value that at least this share of all values does not exceed, as `histogram_quantile` ranks. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number
}
