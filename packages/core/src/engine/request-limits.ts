/**
 * Upper bounds on request fields. Native code stores numbers as 32-bit integers and floats. Larger numbers
 * would wrap around or become NaN there, and the output would be noise.
 */
export const limits = {
  modelLength: 1_024,
  roleLength: 64,
  /** OpenAI accepts 2,048 messages. A context of a million tokens has room for more. */
  messages: 10_000,
  /** Parts per message, and pieces per text prompt. */
  parts: 10_000,
  /** Cache breakpoints per request, as in Anthropic's API. */
  breakpoints: 4,
  /** Texts or documents per embedding or rerank call. OpenAI accepts 2,048. */
  inputs: 10_000,
  /** Per request. OpenAI accepts 128. */
  tools: 1_024,
  /** In characters. OpenAI accepts 64, Anthropic 128. */
  toolNameLength: 128,
  /** Length of a JSON schema as JSON text, in characters. No grammar is built from a longer schema. */
  schemaLength: 1024 * 1024,
  /** Length of a GBNF grammar, in characters. */
  grammarLength: 256 * 1024,
  /** Number of texts of an output format, and the length of each in characters. */
  choices: 1_024,
  choiceLength: 1_024,
  /**
   * Length of a Go template, in characters. The longest template that ships with a model is a ninth as long.
   */
  templateLength: 64 * 1024,
  /** Per request, as in Anthropic's API. OpenAI accepts 500. */
  images: 100,
  /** Size of one image, and of all images of a request, in bytes. OpenAI accepts 50 MB in a request, Anthropic 32 MB. */
  imageBytes: 20 * 1024 * 1024,
  allImageBytes: 50 * 1024 * 1024,
  /** Total length of the text in a request, in characters. */
  text: 64 * 1024 * 1024,
  /** Context size in tokens. The largest models are trained for ten million tokens. */
  context: 2 ** 24,
  /**
   * OpenAI accepts 4 stop sequences, llama.cpp any number. Each piece of output is searched for every stop
   * sequence.
   */
  stops: 64,
  stopLength: 1_024,
  temperature: 100,
  repeatPenalty: { min: 0.01, max: 100 },
  /** Highest absolute value of the presence and frequency penalties. */
  penalty: 100,
  /** Highest absolute value of a logit bias, as in OpenAI's API. It outweighs any logit. */
  bias: 100,
  /** Logit biases per request. No vocabulary has as many tokens. */
  biases: 300_000,
  /** Texts among the logit biases, which are tokenized one by one. */
  biasTexts: 256,
  biasTextLength: 256,
  /** All `lastN` tokens are searched after each token, about 15 ms at worst. A higher number is cut. */
  dry: { strength: 100, base: 100, lastN: 16_384 },
  /** DRY sequence breakers. After each token, the end of the output is searched for all of them. */
  breakers: 8,
  breakerLength: 40,
  /** Alternatives per token, as in the OpenAI and Ollama APIs. */
  logprobs: 20,
  int32: 2 ** 31 - 1,
} as const

/**
 * The `maxTokens` of a request without a limit. Unlike an absent `maxTokens`, it overrides the limit of the
 * Modelfile.
 */
export const unlimitedTokens = limits.int32

/**
 * Whether a value is a list of token ids. Written by hand, because a zod schema takes a second for a million
 * ids.
 */
export const areTokens = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length <= limits.context &&
  value.every((id) => Number.isInteger(id) && id >= 0 && id <= limits.int32)
