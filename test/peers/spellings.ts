/**
 * What llama-server spells differently: paths, names of fields, and texts. Nothing here adds behaviour that Modelmount
 * does not have: each value is one that Modelmount has sent, under another name.
 */
import type { Flags } from './flags.ts'

export type Json = Readonly<Record<string, unknown>>

export interface Server {
  /** Name of the model. llama-server needs none in requests. */
  readonly model: string
  readonly flags: Flags
}

export interface Exchange extends Server {
  /** Body that the client has sent. */
  readonly sent: Json
  /** Sends another request to Modelmount. */
  ask(path: string, body: Json): Promise<Json>
}

interface Spelling {
  request(body: Json, server: Server): Json
  response(body: Json, exchange: Exchange): unknown
  chunk(data: Json, exchange: Exchange): Json
}

const same: Spelling = {
  request: (body, { model }) => ({ ...body, model }),
  response: (body) => body,
  chunk: (data) => data,
}

const chat: Spelling = {
  // The flag is part of the request in OpenAI's API.
  request: (body, { model, flags: { reasoning } }) => ({
    ...body,
    model,
    ...(reasoning === 'off' && { reasoning_effort: 'none' }),
    ...(reasoning === 'on' && { reasoning_effort: 'medium' }),
  }),
  response: async (body, exchange) => {
    const { flags, sent } = exchange
    return flags.verbose === undefined && sent.verbose !== true
      ? body
      : { ...body, __verbose: { prompt: await promptOf(exchange) } }
  },
  chunk: (data) => ({
    ...data,
    // llama-server's first delta has the content null, and OpenAI's an empty text.
    choices: (data.choices as readonly Json[]).map(({ delta, ...choice }) => ({
      ...choice,
      delta: (delta as Json).content === '' ? { ...(delta as Json), content: null } : delta,
    })),
  }),
}

/** The prompt as the model reads it, with the special tokens that begin it. */
async function promptOf({ ask, model, sent }: Exchange): Promise<unknown> {
  const { prompt } = await ask('/apply-template', { ...sent, model })
  const { tokens } = await ask('/tokenize', { model, content: prompt, add_special: true })
  return (await ask('/detokenize', { model, tokens })).content
}

const textCompletion: Spelling = {
  ...same,
  request: ({ n_predict, ...body }, { model }) => ({
    ...body,
    ...(n_predict !== undefined && { max_tokens: n_predict }),
    model,
  }),
}

/** llama-server's own route for text completions. */
const nativeCompletion: Spelling = {
  request: ({ n_probs, prompt, ...body }, server) => ({
    ...textCompletion.request(body, server),
    prompt: Array.isArray(prompt) ? prompt.map(toPrompt) : toPrompt(prompt),
    ...(n_probs !== undefined && { logprobs: n_probs }),
  }),
  response: ({ choices, usage }) => {
    const answers = (choices as readonly Json[]).map(toNative)
    if (answers.length > 1) return answers
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage as Readonly<
      Record<string, number>
    >
    const { cached_tokens = 0 } = prompt_tokens_details as unknown as { readonly cached_tokens?: number }
    const timings = {
      cache_n: cached_tokens,
      prompt_n: (prompt_tokens ?? 0) - cached_tokens,
      predicted_n: completion_tokens,
    }
    return { ...answers[0], timings }
  },
  chunk: ({ choices }) => toNative((choices as readonly [Json])[0]),
}

/** A prompt can be an object with a text. */
const toPrompt = (prompt: unknown): unknown => {
  const { prompt_string, ...others } = Object(prompt) as Json
  return typeof prompt_string === 'string' && Object.keys(others).length === 0 ? prompt_string : prompt
}

const toNative = ({ text, finish_reason, logprobs }: Json): Json => ({
  content: text,
  stop: finish_reason !== null,
  stop_type: finish_reason === 'length' ? 'limit' : 'eos',
  // Modelmount never shifts a context.
  truncated: false,
  ...(logprobs ? { completion_probabilities: toProbabilities(logprobs as Logprobs) } : {}),
})

interface Logprobs {
  readonly tokens: readonly string[]
  readonly token_logprobs: readonly number[]
  readonly top_logprobs: readonly Readonly<Record<string, number>>[]
}

const toProbabilities = ({ tokens, token_logprobs, top_logprobs }: Logprobs): readonly Json[] =>
  tokens.map((token, index) => ({
    token,
    logprob: token_logprobs[index],
    top_logprobs: Object.entries(top_logprobs[index] ?? {}).map(([token, logprob]) => ({ token, logprob })),
  }))

/** The names of models without a tag. */
const withoutTags = ({ data, ...body }: Json): Json => ({
  ...body,
  data: (data as readonly Json[]).map((model) => ({
    ...model,
    id: String(model.id).replace(/:latest$/, ''),
  })),
})

const routes: Readonly<Record<string, readonly [path: string, spelling: Spelling]>> = {
  '/apply-template': ['/apply-template', chat],
  '/chat/completions': ['/v1/chat/completions', chat],
  '/completion': ['/v1/completions', nativeCompletion],
  '/completions': ['/v1/completions', nativeCompletion],
  '/models': ['/v1/models', { ...same, response: withoutTags }],
  '/responses': ['/v1/responses', same],
  '/v1/chat/completions': ['/v1/chat/completions', chat],
  '/v1/completions': ['/v1/completions', textCompletion],
  '/chat/completions/input_tokens': ['/v1/chat/completions/input_tokens', same],
}

export function spellingOf(url: string): { readonly path: string; readonly spelling: Spelling } {
  const [path, spelling] = routes[url] ?? [url, same]
  return { path, spelling }
}

/** Errors of llama-server have other types, and numbers as fields. */
export function errorSpelling(body: Json): Json {
  const { error } = body as { readonly error?: Readonly<Record<string, unknown>> }
  if (!error) return body
  const { code } = error
  const message = String(error.message)
  if (code === 'invalid_api_key') return { ...body, error: { ...error, type: 'authentication_error' } }
  if (code !== 'context_length_exceeded') return body
  const [n_ctx, n_prompt_tokens] = message.match(/\d+/g)?.map(Number) ?? []
  const type = 'exceed_context_size_error'
  return {
    ...body,
    error: { ...error, type, message: `${message} (input is too large)`, n_ctx, n_prompt_tokens },
  }
}

/** Methods that llama-server names for every path. */
const allMethods = 'GET, POST, DELETE, OPTIONS'

/**
 * Headers of a response to a preflight request, as llama-server writes them. It allows the same methods for every path, and
 * all headers, where Modelmount names the methods of the path and the headers of the request.
 */
export function preflightSpelling(
  headers: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const { 'access-control-allow-methods': methods, 'access-control-allow-headers': names } = headers
  const spelled = {
    ...headers,
    ...(methods === 'POST' && { 'access-control-allow-methods': allMethods }),
    ...(names === 'Authorization' && { 'access-control-allow-headers': '*' }),
  }
  const titleOf = (name: string): string => name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return Object.fromEntries(Object.entries(spelled).map(([name, value]) => [titleOf(name), String(value)]))
}
