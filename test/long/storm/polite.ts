/** A polite tenant asks one question at a time, with a pause after each answer. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Outcomes } from './outcomes.ts'

/** Mean pause between an answer and the next question, in milliseconds. */
const meanPauseMs = 2_000

interface Storm {
  readonly url: string
  readonly outcomes: Outcomes
  /** Aborts when the storm ends. */
  readonly signal: AbortSignal
  /** Returns a pseudo-random number from 0 up to 1. */
  readonly random: () => number
}

const bodyOf = (content: string) => ({ model: 'tiny', messages: [{ role: 'user', content }], stream: true })

const apis = [
  {
    path: '/v1/chat/completions',
    body: (content: string) => ({ ...bodyOf(content), max_tokens: 40 }),
    token: /"content":"[^"]/,
    end: 'data: [DONE]\n\n',
  },
  {
    path: '/v1/messages',
    body: (content: string) => ({ ...bodyOf(content), max_tokens: 40 }),
    token: /"text":"[^"]/,
    end: 'event: message_stop',
  },
  {
    path: '/api/chat',
    body: (content: string) => ({ ...bodyOf(content), options: { num_predict: 40 } }),
    // The model thinks first.
    token: /"(content|thinking)":"[^"]/,
    end: '"done":true',
  },
]

/** A question of about 100 tokens, another one each time, so that no prompt is cached. */
function question(random: () => number): string {
  const boxes = Array.from({ length: 6 }, () => `Box ${Math.floor(random() * 1e6)} is red.`)
  return `${boxes.join(' ')} Hello, what can you do?`
}

export async function runPoliteTenant(storm: Storm, name: string): Promise<void> {
  const { signal, random } = storm
  while (!signal.aborted) {
    await ask(storm, name)
    const pauseMs = -Math.log(1 - random()) * meanPauseMs
    await delay(pauseMs, undefined, { signal }).catch(() => {})
  }
}

async function ask({ url, outcomes, signal, random }: Storm, name: string): Promise<void> {
  const { path, body, token, end } = apis[Math.floor(random() * apis.length)] as (typeof apis)[number]
  const first = outcomes.waitForToken()
  try {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tenant': name },
      body: JSON.stringify(body(question(random))),
      signal,
    })
    let text = ''
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      if (token.test(text)) first.arrived()
    }
    outcomes.add('polite', {
      status: response.status,
      retryAfter: response.headers.has('retry-after'),
      body: response.ok ? '' : text,
    })
    if (response.ok && !text.includes(end)) outcomes.addBroken(text)
  } catch (error) {
    if (!signal.aborted) outcomes.add('polite', { closed: String(error) })
  }
  // Also counts a call without a token, and one that the end of the storm has aborted, with the time until then.
  first.arrived()
}
