/** The field names of the requests that the methods of `Llm` take. */
import type { EmbedRequest, RerankRequest } from '../engine/embeddings.ts'
import type {
  ChatInput,
  GenerateRequest,
  InfillInput,
  LoadOptions,
  Sampling,
  TextInput,
} from '../engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../engine/tokens.ts'
import type { CallOptions } from './call.ts'
import type { FieldNames } from './check-fields.ts'

export const samplingFields: FieldNames<Sampling> = {
  ...{ temperature: true, topP: true, topK: true, minP: true, seed: true, repeatPenalty: true },
  ...{ repeatLastN: true, presencePenalty: true, frequencyPenalty: true, logitBias: true, dry: true },
  ...{ xtc: true, ignoreEos: true, minTokens: true },
}

export const loadFields: FieldNames<LoadOptions> = {
  ...{ contextSize: true, defaultContextSize: true, keepAlive: true },
}

export const callFields: FieldNames<CallOptions> = {
  ...{ signal: true, caller: true, endUser: true, background: true, stream: true, dialect: true },
}

export const generateFields: FieldNames<GenerateRequest> = {
  ...{ model: true, input: true, maxTokens: true, defaultMaxTokens: true, stop: true, sampling: true },
  ...{ defaultSampling: true, reasoning: true, format: true, logprobs: true, promptLogprobs: true },
  ...{ overflow: true, load: true, returnTokens: true, returnProgress: true },
  returnTimings: true,
}

const chatInputFields: FieldNames<ChatInput> = {
  ...{ kind: true, messages: true, promptEnd: true, tools: true, toolChoice: true, template: true },
  templateOptions: true,
}
const textInputFields: FieldNames<TextInput> = {
  ...{ kind: true, prompt: true, system: true, messages: true, template: true, images: true },
  templateOptions: true,
}
const infillInputFields: FieldNames<InfillInput> = { kind: true, prefix: true, suffix: true, template: true }
export const inputFields = {
  chat: chatInputFields,
  text: textInputFields,
  infill: infillInputFields,
} as const

export const embedFields: FieldNames<EmbedRequest> = {
  ...{ model: true, inputs: true, overflow: true, dimensions: true, load: true },
}
export const rerankFields: FieldNames<RerankRequest> = {
  ...{ model: true, query: true, documents: true, overflow: true, load: true },
}
export const tokenizeFields: FieldNames<TokenizeRequest> = {
  ...{ model: true, text: true, addSpecial: true, parseSpecial: true, load: true },
}
export const detokenizeFields: FieldNames<DetokenizeRequest> = { model: true, tokens: true, load: true }
