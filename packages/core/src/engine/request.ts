/** What is asked of a model, in nobody's dialect. */

export interface GenerateRequest {
  /** As the client wrote it: `llama3.2`, `team/model:tag`. */
  readonly model: string
  readonly input: ChatInput
  /** Upper bound on generated tokens; the context size bounds it further. */
  readonly maxTokens?: number
  /** Texts that end the answer; they are not part of it. */
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
  /** 0 takes the likeliest token always. */
  readonly temperature?: number
  readonly topP?: number
  /** How many of the likeliest tokens stay in the draw; 0 keeps all. */
  readonly topK?: number
  readonly minP?: number
  /** Absent: a new one each time. */
  readonly seed?: number
  readonly repeatPenalty?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** Added to the logits of tokens, by id in this model's vocabulary. */
  readonly logitBias?: readonly (readonly [token: number, bias: number])[]
}
