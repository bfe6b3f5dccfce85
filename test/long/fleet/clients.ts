/** Clients that stream answers without end, and what they have got. */
import { setTimeout as delay } from 'node:timers/promises'

export interface ClientAnswer {
  /** As in the ledger. Undefined without a token. */
  readonly id: string | undefined
  /** Tokens that the client has received, or that the usage of a whole answer reports. */
  readonly tokens: number
  readonly outcome: 'whole' | 'failed before the first token' | 'failed after the first token' | 'untyped'
}

/** Sends calls one after the other until `signal` aborts, then ends the last one. */
export async function runClient(
  url: string,
  caller: string,
  maxTokens: number,
  signal: AbortSignal,
): Promise<readonly ClientAnswer[]> {
  const answers: ClientAnswer[] = []
  while (!signal.aborted) {
    const answer = await readAnswer(url, `${caller}, call ${answers.length}`, maxTokens)
    answers.push(answer)
    if (answer.outcome !== 'whole') await delay(100)
  }
  return answers
}

async function readAnswer(url: string, question: string, maxTokens: number): Promise<ClientAnswer> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'tiny', max_tokens: maxTokens, ignore_eos: true, stream: true },
      messages: [{ role: 'user', content: `Tell a story to ${question}.` }],
      stream_options: { include_usage: true },
    }),
  })
  const text = await response.text()
  const id = /"id":"chatcmpl-([^"]+)"/.exec(text)?.[1]
  const received = text.match(/"content":"[^"]/g)?.length ?? 0
  const reported = /"completion_tokens":(\d+)/.exec(text)?.[1]
  const tokens = reported === undefined ? received : Number(reported)
  if (text.endsWith('data: [DONE]\n\n') && reported !== undefined) return { id, tokens, outcome: 'whole' }
  const isTyped = /"error":\{[^}]*"type":"[a-z_]+"/.test(text)
  const moment = received === 0 ? 'before' : 'after'
  return { id, tokens, outcome: isTyped ? `failed ${moment} the first token` : 'untyped' }
}
