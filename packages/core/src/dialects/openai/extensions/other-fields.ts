/**
 * Fields of other servers that would change the answer. What has no equivalent here is rejected, unless its value is the
 * one that changes nothing. Shape: llama.cpp's server, "POST /completion"; vLLM, "Sampling parameters" and "Extra
 * parameters".
 */
import { z } from 'zod'
import { integerFrom, JsonObject, optional, unsupportedUnless } from '../../fields.ts'

/** Accepts only values that change nothing. */
const only = <Schema extends z.ZodType>(
  schema: Schema,
  feature: string,
  isNone: (value: z.output<Schema>) => boolean = () => false,
) => unsupportedUnless(schema, feature, isNone)
const notTrue = (feature: string) => only(z.boolean(), feature, (value) => !value)
const notFalse = (feature: string) => only(z.boolean(), feature, (value) => value)
const noneOf = (feature: string) => only(z.array(z.unknown()), feature, ({ length }) => length === 0)
const upToZero = (feature: string) => only(z.number(), feature, (value) => value <= 0)
const below = (limit: number, feature: string) => only(z.number(), feature, (value) => value < limit)
const one = (feature: string) => only(z.number(), feature, (value) => value === 1)

/** llama.cpp's default order, in which the engine samples, too. */
const samplers = ['penalties', 'dry', 'top_n_sigma', 'top_k', 'typ_p', 'top_p', 'min_p', 'xtc', 'temperature']
const typicalP = one('Locally typical sampling')

/** Fields of all requests that generate text. */
export const otherFields = {
  // llama.cpp's server. A field without an effect unless one of these is set, such as `mirostat_tau`, is ignored.
  typical_p: typicalP,
  typ_p: typicalP,
  mirostat: only(integerFrom(0), 'Mirostat', (mode) => mode === 0),
  top_n_sigma: upToZero('Top-nσ sampling'),
  dynatemp_range: upToZero('A dynamic temperature'),
  min_keep: upToZero('A minimum number of candidates'),
  adaptive_target: below(0, 'Adaptive sampling'),
  samplers: only(
    z.union([z.array(z.string()), z.string()]),
    'Another order of samplers',
    (order) => Array.isArray(order) && order.join() === samplers.join(),
  ),
  n_cmpl: one('`n_cmpl`, instead of `n`,'),
  n_indent: upToZero('A minimum indentation'),
  n_probs: upToZero('`n_probs`, instead of `logprobs`,'),
  post_sampling_probs: notTrue('Reporting probabilities after sampling'),
  t_max_predict_ms: upToZero('A limit of time'),
  lora: noneOf('Choosing adapters in a request'),
  return_tokens: notTrue('Reporting token ids'),
  response_fields: noneOf('Choosing the fields of the response'),
  grammar_lazy: notTrue('A lazy grammar'),
  grammar_triggers: noneOf('A lazy grammar'),
  preserved_tokens: noneOf('Keeping special tokens in the answer'),
  generation_prompt: only(z.string(), 'Replacing the generation prompt', (text) => text === ''),
  // vLLM.
  stop_token_ids: noneOf('Stopping at token ids'),
  include_stop_str_in_output: notTrue('Including the stop sequence in the answer'),
  skip_special_tokens: notFalse('Keeping special tokens in the answer'),
  bad_words: noneOf('Banning words, other than with `logit_bias`,'),
  allowed_token_ids: only(z.array(z.unknown()), 'Allowing only some tokens'),
  logits_processors: noneOf('A logits processor'),
  vllm_xargs: only(JsonObject, '`vllm_xargs`', (fields) => Object.keys(fields).length === 0),
  use_beam_search: notTrue('Beam search'),
  truncate_prompt_tokens: only(z.number(), 'Truncating the prompt to a number of tokens'),
  prompt_logprobs: only(z.number(), '`prompt_logprobs`, other than with `echo` in completions,'),
  return_token_ids: notTrue('Reporting token ids'),
  return_tokens_as_token_ids: notTrue('Reporting token ids'),
}

/** Fields of requests with a conversation. */
export const otherChatFields = {
  // OpenAI. The answer would depend on the results of a search.
  web_search_options: only(JsonObject, 'Search in the web'),
  // llama.cpp's server.
  echo: notTrue('Repeating the conversation'),
  parse_tool_calls: notFalse('Leaving tool calls in the text'),
  reasoning_budget_tokens: below(0, 'A limit of the reasoning'),
  thinking_budget_tokens: below(0, 'A limit of the reasoning'),
  // vLLM.
  chat_template: only(z.string(), 'Replacing the chat template'),
  documents: noneOf('A list of documents'),
  add_special_tokens: notTrue('Adding special tokens'),
  include_reasoning: notFalse('Leaving out the reasoning'),
}

/** Fields of requests with text prompts. */
export const otherTextFields = { add_special_tokens: notFalse('A prompt without special tokens') }

/** Fields of requests for embeddings. Vectors have the length 1, which is llama.cpp's `embd_normalize` of 2. */
export const otherEmbeddingFields = {
  embd_normalize: only(z.number(), 'Another length of the vectors', (norm) => norm === 2),
  normalize: notFalse('Another length of the vectors'),
  truncate_prompt_tokens: only(z.number(), 'Truncating an input to a number of tokens'),
  add_special_tokens: notFalse('An input without special tokens'),
}

/** Fields of requests that rank documents. Shape: Cohere's API, vLLM, and text-embeddings-inference. */
export const otherRerankFields = {
  max_tokens_per_doc: only(z.number(), 'Truncating documents to a number of tokens'),
  truncate_prompt_tokens: only(z.number(), 'Truncating documents to a number of tokens'),
  truncate: notTrue('Truncating documents'),
  raw_scores: notTrue('Scores without bounds'),
  instruction: only(z.string(), 'An instruction', (text) => text === ''),
}

/** Where reasoning goes. Other servers turn it on and off with `enable_thinking`, too. */
export const reasoningFields = {
  enable_thinking: optional(z.boolean()),
  /** `none` leaves reasoning in the text. Every other format separates it. */
  reasoning_format: only(
    z.enum(['none', 'auto', 'deepseek', 'deepseek-legacy']),
    'Reasoning both in the text and beside it',
    (format) => format !== 'deepseek-legacy',
  ),
}
