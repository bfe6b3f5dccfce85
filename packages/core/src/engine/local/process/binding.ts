/** The model as the rest of this folder sees it. The only file that loads node-llama-cpp; the others know its types. */
import { setImmediate } from 'node:timers/promises'
import type { LlamaContextSequence, LlamaModel, SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import { contextLength, LlmError } from '../../../errors.ts'
import { type ChatTemplate, chatMl } from '../../../template/jinja.ts'
import type { ProcessConfig } from '../protocol.ts'
import { missingBuild, missingLibrary } from './missing-engine.ts'

/** Prompts are read in pieces of this size, so that a call can be cancelled between two; 64 rows is where the fast CPU kernel starts. */
const chunkSize = 64
/** Longer texts are counted in pieces first: tokenising blocks, at about 4 MB a second. */
const sliceLength = 128 * 1024

/** What the watch over this process looks at: it grows with every piece of work. */
export interface Progress {
  steps: number
}

export interface Binding {
  readonly contextSize: number
  readonly fingerprint: string
  readonly vocabularySize: number
  readonly template: ChatTemplate
  /** What every prompt of this model begins with, where it wants that. */
  readonly bos: Token | undefined
  /** What it closes its own message with. */
  readonly eot: Token | undefined
  /** The memory for weights and context, and the part of it that is on a graphics card. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** Throws `context_length`, with an estimate, for a text that is far longer than the context. */
  tokenize(text: string): Promise<readonly Token[]>
  /** @param before what precedes, so that spaces come out right */
  detokenize(tokens: readonly Token[], before: readonly Token[]): string
  /** With the tokens that are no text, such as those around a message. */
  spell(tokens: readonly Token[]): string
  /** Forgets what was read, reads the prompt piece by piece, then draws one token after the other. */
  generate(
    prompt: readonly Token[],
    options: SequenceEvaluateOptions,
    onPiece: () => boolean,
  ): AsyncGenerator<Token>
  bias(
    pairs: readonly (readonly [token: number, bias: number])[],
  ): NonNullable<SequenceEvaluateOptions['tokenBias']>
}

export async function loadModel(config: ProcessConfig, progress: Progress): Promise<Binding> {
  const { getLlama, getModuleVersion, LlamaLogLevel, NoBinaryFoundError, TokenBias } = await importLibrary()
  try {
    const llama = await getLlama({
      // Never a compiler or a download in somebody's server.
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      logLevel: LlamaLogLevel.error,
      maxThreads: config.threads,
    })
    const model = await llama.loadModel({
      modelPath: config.modelPath,
      onLoadProgress: () => {
        progress.steps++
      },
    })
    // An encoder sees all tokens at once: asked for the next one, it says noise.
    if (model.fileInfo.architectureMetadata?.attention?.causal === false) throw notForChat(config.modelName)
    const contextSize = Math.min(config.contextSize, model.trainContextSize || config.contextSize)
    const context = await model.createContext({
      contextSize,
      sequences: 1,
      threads: config.threads,
      batchSize: Math.min(chunkSize, contextSize),
    })
    const sequence = context.getSequence()
    return {
      contextSize,
      fingerprint: config.fingerprint,
      vocabularySize: vocabularySize(model),
      template: chatTemplate(model),
      ...(await footprint(model, contextSize)),
      bos: beginning(model),
      eot: model.tokens.eot ?? model.tokens.eos ?? undefined,
      tokenize: (text) => tokenize(model, text, contextSize),
      detokenize: (tokens, before) => model.detokenize(tokens, false, before),
      spell: (tokens) => model.detokenize(tokens, true),
      generate: (prompt, options, onPiece) => generate(sequence, prompt, options, onPiece),
      bias: (pairs) => {
        const tokenBias = new TokenBias(model.tokenizer)
        // Its own `set` leaves end tokens out in silence; the map behind it takes all.
        const { _biases } = tokenBias as unknown as { readonly _biases?: Map<number, number> }
        for (const [token, logit] of pairs) {
          if (_biases) _biases.set(token, logit)
          else tokenBias.set(token as Token, { logit })
        }
        return tokenBias
      },
    }
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    if (cause instanceof NoBinaryFoundError) throw upstream(missingBuild(await getModuleVersion()), cause)
    const reason =
      cause instanceof Error ? cause.message.replaceAll(config.modelPath, 'the file') : String(cause)
    throw upstream(`The model "${config.modelName}" could not be loaded: ${reason}`, cause)
  }
}

async function importLibrary(): Promise<typeof import('node-llama-cpp')> {
  try {
    return await import('node-llama-cpp')
  } catch (cause) {
    throw upstream(missingLibrary, cause)
  }
}

const notForChat = (name: string): LlmError =>
  new LlmError('invalid_request', `The model "${name}" makes embeddings, and cannot chat.`, {
    param: 'model',
  })

const upstream = (message: string, cause: unknown): LlmError =>
  new LlmError('upstream', message, {}, { cause })

async function* generate(
  sequence: LlamaContextSequence,
  prompt: readonly Token[],
  options: SequenceEvaluateOptions,
  onPiece: () => boolean,
): AsyncGenerator<Token> {
  await sequence.clearHistory()
  const head = prompt.slice(0, -1)
  for (let start = 0; start < head.length; start += chunkSize) {
    if (!onPiece()) return
    await sequence.evaluateWithoutGeneratingNewTokens(head.slice(start, start + chunkSize))
  }
  if (!onPiece()) return
  yield* sequence.evaluate(prompt.slice(-1), options)
}

async function tokenize(model: LlamaModel, text: string, contextSize: number): Promise<readonly Token[]> {
  for (let start = 0, count = 0; text.length > sliceLength && start < text.length; start += sliceLength) {
    count += model.tokenize(text.slice(start, start + sliceLength), true).length
    const seen = Math.min(start + sliceLength, text.length)
    // Far too long: the rest is not worth blocking for, and the number is an estimate.
    if (count > 2 * contextSize) throw contextLength(Math.round((count * text.length) / seen), contextSize)
    await setImmediate()
  }
  return model.tokenize(text, true)
}

function beginning({ tokens: { bos, shouldPrependBosToken } }: LlamaModel): Token | undefined {
  return bos !== null && shouldPrependBosToken ? bos : undefined
}

async function footprint(
  { fileInsights, gpuLayers }: LlamaModel,
  contextSize: number,
): Promise<Pick<Binding, 'sizeBytes' | 'gpuBytes'>> {
  const [weights, context] = await Promise.all([
    fileInsights.estimateModelResourceRequirementsV2({ gpuLayers }),
    fileInsights.estimateContextResourceRequirementsV2({
      contextSize,
      modelGpuLayers: gpuLayers,
      batchSize: Math.min(chunkSize, contextSize),
      sequences: 1,
    }),
  ])
  // Estimates, which need not be whole; clients read them as whole numbers.
  const gpuBytes = Math.round(weights.gpuVram + context.gpuVram)
  return { sizeBytes: Math.round(weights.cpuRam + context.cpuRam) + gpuBytes, gpuBytes }
}

function chatTemplate(model: LlamaModel): ChatTemplate {
  const { bosString, eosString } = model.tokens
  return {
    source: model.fileInfo.metadata.tokenizer?.chat_template ?? chatMl,
    bosToken: bosString ?? '',
    eosToken: eosString ?? '',
  }
}

function vocabularySize(model: LlamaModel): number {
  let size = 0
  for (const _token of model.iterateAllTokens()) size++
  return size
}
