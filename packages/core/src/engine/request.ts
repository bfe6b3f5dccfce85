/** What is asked of a model, in nobody's dialect. */

export interface GenerateRequest {
  /** As the client wrote it: `llama3.2`, `team/model:tag`. */
  readonly model: string
  readonly input: ChatInput
  /** Upper bound on generated tokens; the context size bounds it further. */
  readonly maxTokens?: number
  /** Texts that end the answer; they are not part of it. At most 64, of at most 1,024 characters. */
  readonly stop?: readonly string[]
  readonly sampling?: Sampling
}

export interface ChatInput {
  readonly kind: 'chat'
  /** A trailing assistant message is continued, in every dialect. */
  readonly messages: readonly Message[]
}

export interface Message {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: readonly Part[]
}

export interface Part {
  readonly type: 'text'
  readonly text: string
}

export interface Sampling {
  /** 0 takes the likeliest token always, and so does less than a millionth. */
  readonly temperature?: number
  readonly topP?: number
  /** How many of the likeliest tokens stay in the draw; 0 keeps all. */
  readonly topK?: number
  readonly minP?: number
  /** Absent: a new one each time. */
  readonly seed?: number
  /** 1 is none; from 0.01 to 100. */
  readonly repeatPenalty?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** Added to the logits of tokens, by id in this model's vocabulary; from -100 to 100. */
  readonly logitBias?: readonly (readonly [token: number, bias: number])[]
}

/**
 * What no honest request exceeds. Numbers become 32-bit integers and floats in native code, where
 * larger ones wrap around or end as NaN, and the answer is noise.
 */
export const limits = {
  modelLength: 1_024,
  /** OpenAI takes 2,048; a context of a million tokens has room for more. */
  messages: 10_000,
  /** In one message. */
  parts: 10_000,
  /** Of all messages together, in characters. */
  text: 64 * 1024 * 1024,
  /** OpenAI takes 4, llama.cpp any number; but each is looked for in each piece of the answer. */
  stops: 64,
  stopLength: 1_024,
  temperature: 100,
  repeatPenalty: { min: 0.01, max: 100 },
  /** Of presence and frequency, to both sides. */
  penalty: 100,
  /** To both sides, as OpenAI takes it; it outweighs whatever a model says. */
  bias: 100,
  /** No vocabulary is larger. */
  biases: 300_000,
  int32: 2 ** 31 - 1,
} as const

/** Of all messages, in characters. */
export const textLength = ({ input }: GenerateRequest): number =>
  input.messages.reduce((sum, { content }) => content.reduce((all, { text }) => all + text.length, sum), 0)
