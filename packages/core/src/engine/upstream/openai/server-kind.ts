/** Servers add different fields and routes to OpenAI's API. */
import type { OpenAiServer } from '../options.ts'

export interface ServerFeatures {
  /** Fields of sampling options that OpenAI does not have. Absent ones are not supported. */
  readonly sampling: Readonly<Partial<Record<SamplingExtension, string>>>
  /** Fields of output constraints that OpenAI does not have. */
  readonly constraints: 'grammar' | 'structured_outputs' | undefined
  /**
   * `messages`: `/tokenize` takes a chat. `template`: `/apply-template` renders it first. `count`: there is only a route
   * that counts.
   */
  readonly tokenizer: 'messages' | 'template' | 'count' | undefined
  /** Value of `max_tokens` of a completion without a limit. OpenAI has none, and takes 16 tokens. */
  readonly unlimited: -1 | null
  /** Whether a chat can end with an open message of the assistant, and has options for its template. */
  readonly hasTemplateFields: boolean
  /** Whether `/v1/completions` takes a `suffix`. */
  readonly hasSuffix: boolean
  /** Whether prompts of different salts share no cache. */
  readonly hasCacheSalt: boolean
  /** Whether a text can be a key of `logit_bias`. */
  readonly hasTextBias: boolean
  /** Whether a model may have a default seed. Then a request for a random seed needs one. */
  readonly hasDefaultSeed: boolean
  /** Whether texts may have unpaired surrogates. */
  readonly hasSurrogates: boolean
  /** Smallest `top_p` that the server takes. 1e-6 leaves only the most likely token, as 0 does elsewhere. */
  readonly minTopP: number
  /** Whether a stream reports how far the prompt is evaluated. */
  readonly hasProgress: boolean
  /** Whether pooling models cut texts that are too long, if a request asks for it. */
  readonly hasTruncation: boolean
  /** Whether each event has the counts so far. */
  readonly hasContinuousUsage: boolean
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
}

/** Names of `Sampling` that only some servers have. */
export type SamplingExtension =
  | 'topK'
  | 'minP'
  | 'repeatPenalty'
  | 'repeatLastN'
  | 'ignoreEos'
  | 'minTokens'
  | 'dry'
  | 'xtc'

const none: ServerFeatures = {
  ...{
    sampling: {},
    constraints: undefined,
    tokenizer: undefined,
    hasTemplateFields: false,
    hasSuffix: false,
  },
  ...{ hasCacheSalt: false, hasContinuousUsage: false, maxTokensField: 'max_tokens', unlimited: null },
  ...{ hasTextBias: false, hasDefaultSeed: false, hasProgress: false, hasTruncation: false, minTopP: 0 },
  hasSurrogates: true,
}
const llamaSampling = {
  ...{ topK: 'top_k', minP: 'min_p', repeatPenalty: 'repeat_penalty', repeatLastN: 'repeat_last_n' },
  ...{ ignoreEos: 'ignore_eos', dry: 'dry', xtc: 'xtc' },
} as const
const llamaFields = { hasTextBias: true, hasDefaultSeed: true, hasProgress: true } as const
const vllmSampling = {
  ...{ topK: 'top_k', minP: 'min_p', repeatPenalty: 'repetition_penalty' },
  ...{ ignoreEos: 'ignore_eos', minTokens: 'min_tokens' },
} as const

export const serverFeatures: Readonly<Record<OpenAiServer, ServerFeatures>> = {
  vllm: {
    ...{ ...none, sampling: vllmSampling, constraints: 'structured_outputs', tokenizer: 'messages' },
    ...{ hasTemplateFields: true, hasCacheSalt: true, hasContinuousUsage: true },
    ...{ hasTruncation: true, hasSurrogates: false, minTopP: 1e-6 },
  },
  sglang: { ...none, sampling: vllmSampling, hasTemplateFields: true },
  'llama-server': {
    ...{ ...none, sampling: llamaSampling, constraints: 'grammar', tokenizer: 'template' },
    ...{ hasTemplateFields: true, unlimited: -1, ...llamaFields },
  },
  modelmount: {
    ...{
      ...none,
      sampling: { ...llamaSampling, minTokens: 'min_tokens' },
      constraints: 'structured_outputs',
      tokenizer: 'count',
    },
    ...{ hasTemplateFields: true, hasSuffix: true, unlimited: -1, ...llamaFields },
  },
  openai: { ...none, maxTokensField: 'max_completion_tokens' },
  other: none,
}

/** @param owners values of `owned_by` in the server's list of models. Other models than its own may come first. */
export function detectServer(owners: readonly unknown[]): OpenAiServer {
  for (const owner of owners) {
    const server = serverByOwner.get(owner)
    if (server) return server
  }
  return 'other'
}

const serverByOwner: ReadonlyMap<unknown, OpenAiServer> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['modelmount', 'modelmount'],
  ['llamacpp', 'llama-server'],
  ['openai', 'openai'],
  ['openai-internal', 'openai'],
  ['system', 'openai'],
])
