/**
 * Upper bounds on requests. Numbers become 32-bit integers and floats in native code, where larger ones wrap around or
 * become NaN, and the output is noise.
 */
export const limits = {
  modelLength: 1_024,
  roleLength: 64,
  /** OpenAI takes 2,048; a context of a million tokens has room for more. */
  messages: 10_000,
  /** Per message. */
  parts: 10_000,
  /** As many as Anthropic takes. */
  breakpoints: 4,
  /** Per embedding or rerank call. OpenAI takes 2,048. */
  inputs: 10_000,
  /** OpenAI takes 128. */
  tools: 1_024,
  /** OpenAI takes 64, Anthropic 128. */
  toolNameLength: 128,
  /** Schema of an output constraint, as JSON, in characters. No grammar is built from a larger one. */
  schemaLength: 1024 * 1024,
  /** In characters. */
  grammarLength: 256 * 1024,
  /** Go template, in characters. The longest one that ships with a model is a ninth of it. */
  templateLength: 64 * 1024,
  /** All messages together, in characters. */
  text: 64 * 1024 * 1024,
  /** In tokens. The largest models are trained for ten million. */
  context: 2 ** 24,
  /** OpenAI takes 4, llama.cpp any number; each is searched for in each piece of the output. */
  stops: 64,
  stopLength: 1_024,
  temperature: 100,
  repeatPenalty: { min: 0.01, max: 100 },
  /** Presence and frequency penalty, in both directions. */
  penalty: 100,
  /** In both directions, as in OpenAI's API. It outweighs any logit. */
  bias: 100,
  /** More than any vocabulary has. */
  biases: 300_000,
  dry: { strength: 100, base: 100 },
  /** Each is searched for in the whole vocabulary; llama.cpp takes 40 of its bytes. */
  breakers: 8,
  breakerLength: 40,
  /** As many as OpenAI and Ollama report. */
  logprobs: 20,
  int32: 2 ** 31 - 1,
} as const

/** A hand-written check: a zod schema takes a second for a million ids. */
export const areTokens = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length <= limits.context &&
  value.every((id) => Number.isInteger(id) && id >= 0 && id <= limits.int32)
