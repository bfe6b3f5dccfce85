// Client of an OpenAI-compatible server: requests a streamed answer and records when each token arrives.
import { once } from 'node:events'
import { request } from 'node:http'
import { basename } from 'node:path'
import { Spoilt } from './idle-guard.mjs'

/**
 * The fields that every request for this model has.
 * @param firstWord id of the first of the 32 tokens that answers consist of: a model with random weights may
 * stop early
 */
export const toQuestion = (file, firstWord) => ({
  model: basename(file, '.gguf'),
  bias: Object.fromEntries(Array.from({ length: 32 }, (_, index) => [firstWord + index, 100])),
})

/** Requests exactly this number of tokens. Throws `Spoilt` if the answer has fewer. */
export async function ask({ url, model, bias, headers }, { prompt, tokens, seed, onToken = () => {} }) {
  const startedAt = performance.now()
  const body = {
    model,
    messages: [{ role: 'user', content: prompt }],
    max_tokens: tokens,
    stream: true,
    stream_options: { include_usage: true },
    ...{ temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.05, seed },
    logit_bias: bias,
    // null leaves reasoning to the template. Without the field, llama-server would pass its own value.
    chat_template_kwargs: { enable_thinking: null },
  }
  const response = await post(`${url}/v1/chat/completions`, body, headers)
  const times = []
  let usage
  let reason
  let fingerprint
  for await (const { choices = [], error, ...chunk } of events(response)) {
    if (error) throw new Spoilt(`${url} failed: ${JSON.stringify(error)}`)
    usage = chunk.usage ?? usage
    fingerprint = chunk.system_fingerprint ?? fingerprint
    reason = choices[0]?.finish_reason ?? reason
    if (!choices[0]?.delta.content) continue
    times.push(performance.now())
    onToken(times.length)
  }
  if (reason !== 'length' || times.length !== tokens)
    throw new Spoilt(`${url} sent ${times.length} of ${tokens} tokens and ended with "${reason}".`)
  return { first: times[0] - startedAt, times, promptTokens: usage.prompt_tokens, fingerprint }
}

/** A prompt with a unique first word, so that no cached prompt matches. */
export const prompt = (words) => `${String(Math.random()).slice(2, 8)} ${text(words)}`

/**
 * Returns the server's tokens per word, and the tokens of a prompt without words. Also warms the server up.
 */
export async function promptShape(side) {
  const few = await ask(side, { prompt: prompt(10), tokens: 1 })
  const many = await ask(side, { prompt: prompt(110), tokens: 1 })
  const perWord = (many.promptTokens - few.promptTokens) / 100
  return { perWord, frame: few.promptTokens - 10 * perWord }
}

/** The `system_fingerprint` of the server. */
export async function fingerprintOf(side) {
  const { fingerprint = 'no name' } = await ask(side, { prompt: prompt(10), tokens: 1 })
  return fingerprint
}

async function post(url, body, headers) {
  // A new connection per call: some servers close connections that they announce as kept alive.
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  })
  sent.end(JSON.stringify(body))
  const [response] = await once(sent, 'response')
  response.setEncoding('utf8')
  if (response.statusCode === 200) return response
  throw new Error(`${url} responded with ${response.statusCode}: ${(await response.toArray()).join('')}`)
}

async function* events(response) {
  let rest = ''
  let ended = false
  for await (const piece of response) {
    const frames = (rest + piece).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      const [, data] = /^(?:data|error): (.*)$/m.exec(frame) ?? []
      ended ||= data === '[DONE]'
      if (data && data !== '[DONE]') yield JSON.parse(data)
    }
  }
  if (!ended) throw new Spoilt('A stream ended without [DONE].')
}

const known = 'river stone cloud table window engine number paper green yellow garden bridge market'.split(
  ' ',
)
const text = (words) =>
  Array.from({ length: words }, (_, index) => known[index % known.length] + (index % 10)).join(' ')
