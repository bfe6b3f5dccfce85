/** The model as the rest of this folder sees it. The only file that loads node-llama-cpp; the others know its types. */
import type {
  GgufInsights,
  Llama,
  LlamaContext,
  LlamaModel,
  LlamaModelOptions,
  SequenceEvaluateOptions,
  Token,
} from 'node-llama-cpp'
import { LlmError } from '../../../errors.ts'
import { type ChatTemplate, chatMl } from '../../../template/jinja.ts'
import type { ProcessConfig } from '../protocol.ts'
import { calibrate, smallestChunk, threadCandidates } from './calibrate.ts'
import { machineMemory } from './machine-memory.ts'
import { type Plan, planMemory, type Room } from './memory.ts'
import { missingBuild, missingLibrary } from './missing-engine.ts'
import { OneByOne } from './one-by-one.ts'
import { shareOfCores } from './presence.ts'
import { type Purpose, purposeOf } from './purpose.ts'
import { openReading, type Reading } from './reading.ts'
import { type Draw, type SamplerConfig, toSamplerConfig } from './sampling.ts'
import { type Decoder, type Piece, type Runner, type Sampler, Scheduler } from './scheduler.ts'
import { openSnapshots, type Snapshots } from './snapshots.ts'
import { Tokenizer } from './tokenizer.ts'

/** Prompts are read in pieces of these sizes at most, so that a call can be cancelled between two. */
const chunkSizes = { cpu: smallestChunk, gpu: 512 }

/** Where nothing was measured. */
const unknownStepMs = 6_000

/** What the watch over this process looks at: it grows with every piece of work. */
export interface Progress {
  steps: number
}

/** What one load decides once. */
export interface Binding {
  /** As the app calls it. */
  readonly name: string
  readonly contextSize: number
  readonly fingerprint: string
  readonly vocabularySize: number
  readonly template: ChatTemplate
  /** What every prompt of this model begins with, where it wants that. */
  readonly bos: Token | undefined
  /** What every text of it ends with, where it wants that. */
  readonly end: Token | undefined
  /** Before a gap, behind it, and before what fills it; nothing where the model was not made for that. */
  readonly infill: Readonly<Record<'prefix' | 'suffix' | 'middle', Token>> | undefined
  /** How many answers are made side by side, or texts are read. */
  readonly parallel: number
  /** What it closes its own message with. */
  readonly eot: Token | undefined
  /** The memory for weights and context, and the part of it that is on a graphics card. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** Of it, what is read from the file again when the machine has used its memory otherwise. */
  readonly mappedBytes: number
  /** What is not as it was wanted, for the log of the app. */
  readonly notes: readonly string[]
  /** What a step takes at worst, in milliseconds. */
  readonly stepMs: number
  readonly runner: Runner
  /** Nothing where the model writes. */
  readonly reading: Reading | undefined
  /** From the next step on no more than so many. */
  limitThreads(most: number): void
  /** Throws `context_length`, with an estimate, for a text that is far longer than the context. */
  tokenize(text: string, signal: AbortSignal, how?: Tokenizing): Promise<readonly Token[]>
  /**
   * @param before what precedes, so that spaces come out right
   * @param withControl also the tokens that are no text
   */
  detokenize(tokens: readonly Token[], before: readonly Token[], withControl?: boolean): string
  /** With the tokens that are no text, such as those around a message. */
  spell(tokens: readonly Token[]): string
}

interface Tokenizing {
  /** What looks like a special token is text. @default false */
  readonly isPlain?: boolean | undefined
  /** So many tokens are enough, or a few more; then no text is too long. */
  readonly enough?: number | undefined
}

/**
 * @param open the way to the library's inside; where it leads nowhere, answers are made one after the other
 * @param room in memory; without the others of the machine there is what is free
 */
export async function loadModel(
  config: ProcessConfig,
  progress: Progress,
  open: typeof openDecoder = openDecoder,
  room: Room = freeRoom,
): Promise<Binding> {
  const library = await importLibrary()
  try {
    const llama = await library.getLlama({
      // Never a compiler or a download in somebody's server.
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      logLevel: library.LlamaLogLevel.error,
      maxThreads: config.threads,
    })
    const { F16, Q8_0, Q4_0 } = library.GgmlType
    const cacheTypes = { f16: F16, q8_0: Q8_0, q4_0: Q4_0 }
    const options: LlamaModelOptions = {
      modelPath: config.modelPath,
      gpuLayers: config.gpuLayers,
      defaultContextFlashAttention: config.flashAttention ?? 'auto',
      onLoadProgress: () => {
        progress.steps++
      },
    }
    const [model, plan] = await loadPlanned(library, llama, options, async (insights) =>
      planMemory(config, insights, {
        ...room,
        vram: await llama.getVramState(),
        chunkSizes,
        cacheTypes,
      }),
    )
    const { contextSize, parallel } = plan
    const purpose = purposeOf(model.fileInsights)
    if (purpose !== 'text') return await reader(config, model, plan, purpose)
    const context = await model.createContext({
      contextSize,
      sequences: parallel,
      threads: config.threads,
      batchSize: plan.batchSize,
      flashAttention: plan.flashAttention,
      experimentalKvCacheKeyType: cacheTypes[plan.kvCacheType],
      experimentalKvCacheValueType: cacheTypes[plan.kvCacheType],
    })
    const decoder = open(llama, model, context, parallel, plan.chunkSize)
    const { threads, tuneThreads } = config
    const best = decoder && (await calibrate(decoder, tuneThreads ? threadCandidates(threads) : [threads]))
    const limitThreads = (most: number): void =>
      decoder?.setThreads(Math.min(best?.threads ?? threads, most), Math.min(threads, most))
    limitThreads(threads)
    const runner = decoder
      ? new Scheduler(
          { ...decoder, chunkSize: best?.chunkSize ?? plan.chunkSize },
          progress,
          canForget(model) ? undefined : snapshotsIn(config.folder),
        )
      : new OneByOne(
          context.getSequence(),
          (pairs) => toBias(library, model, pairs),
          plan.chunkSize,
          progress,
        )
    return {
      ...about(config, model, plan),
      parallel: decoder ? parallel : 1,
      stepMs: best?.stepMs ?? unknownStepMs,
      runner,
      reading: undefined,
      limitThreads,
    }
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    if (cause instanceof library.NoBinaryFoundError)
      throw upstream(missingBuild(await library.getModuleVersion()), cause)
    const reason =
      cause instanceof Error ? cause.message.replaceAll(config.modelPath, 'the file') : String(cause)
    throw upstream(`The model "${config.modelName}" could not be loaded: ${reason}`, cause)
  }
}

/** What does not depend on what the model is made for. */
function about(
  config: ProcessConfig,
  model: LlamaModel,
  { contextSize, need, mappedBytes, notes }: Plan,
): Omit<Binding, 'parallel' | 'stepMs' | 'runner' | 'reading' | 'limitThreads'> {
  const tokenizer = new Tokenizer((text) => model.tokenize(text, true), contextSize)
  const plainly = new Tokenizer((text) => model.tokenize(text), contextSize)
  return {
    name: config.modelName,
    contextSize,
    fingerprint: config.fingerprint,
    vocabularySize: vocabularySize(model),
    template: chatTemplate(model),
    // Estimates, which need not be whole; clients read them as whole numbers.
    sizeBytes: Math.round(need.ram + need.vram),
    gpuBytes: Math.round(need.vram),
    mappedBytes,
    notes,
    bos: beginning(model),
    end: ending(model),
    infill: infillTokens(model),
    eot: model.tokens.eot ?? model.tokens.eos ?? undefined,
    tokenize: (text, signal, { isPlain = false, enough } = {}) =>
      (isPlain ? plainly : tokenizer).tokens(text, signal, enough),
    detokenize: (tokens, before, withControl = false) => model.detokenize(tokens, withControl, before),
    spell: (tokens) => model.detokenize(tokens, true),
  }
}

/** A model that reads, and does not write. */
async function reader(
  config: ProcessConfig,
  model: LlamaModel,
  plan: Plan,
  purpose: Exclude<Purpose, 'text'>,
): Promise<Binding> {
  const { contextSize, parallel } = plan
  const reading = purpose === 'nothing' ? undefined : await openReading(model, purpose, contextSize, parallel)
  return {
    ...about(config, model, plan),
    parallel,
    stepMs: reading?.stepMs ?? unknownStepMs,
    reading,
    runner: {
      run: () => Promise.reject(notForChat(config.modelName)),
      rest: async () => reading?.pool.rest(),
    },
    limitThreads: (most) => reading?.pool.limit(most),
  }
}

/**
 * Plans when the library has read the header of the file, and not yet the weights. It lets nobody in there;
 * but it makes its insights just then, and to make them beside it would cost as much again.
 */
async function loadPlanned(
  { GgufInsights: maker }: typeof import('node-llama-cpp'),
  llama: Llama,
  options: LlamaModelOptions,
  planFor: (insights: GgufInsights) => Promise<Plan>,
): Promise<[LlamaModel, Plan]> {
  const { from } = maker
  let plan: Plan | undefined
  maker.from = async (...header) => {
    const insights = await from.apply(maker, header)
    plan = await planFor(insights)
    options.gpuLayers = plan.gpuLayers
    return insights
  }
  try {
    const model = await llama.loadModel(options)
    return [model, plan ?? (await planFor(model.fileInsights))]
  } finally {
    maker.from = from
  }
}

const freeRoom: Room = {
  roomFor: async () => machineMemory(),
  waitForRoom: async () => false,
}

async function importLibrary(): Promise<typeof import('node-llama-cpp')> {
  try {
    return await import('node-llama-cpp')
  } catch (cause) {
    throw upstream(missingLibrary, cause)
  }
}

const notForChat = (name: string): LlmError =>
  new LlmError('invalid_request', `The model "${name}" reads texts, and cannot chat.`, { param: 'model' })

const upstream = (message: string, cause: unknown): LlmError =>
  new LlmError('upstream', message, {}, { cause })

/** The part of the library's inside that is used here. Shape: its `bindings/AddonTypes`. */
interface AddonContext {
  initBatch(size: number): void
  addToBatch(sequence: number, position: number, tokens: Uint32Array, outputs: Uint32Array): Uint32Array
  decodeBatch(): Promise<void>
  sampleToken(output: number, sampler: AddonSampler): Promise<Token | -1>
  removeTokenCellsFromSequence(sequence: number, from: number, to: number): boolean
  /** -1 where it holds nothing. */
  getSequenceKvCacheMinPosition(sequence: number): number
  saveSequenceStateToFile(file: string, sequence: number, tokens: Uint32Array): Promise<number>
  loadSequenceStateFromFile(file: string, sequence: number, contextSize: number): Promise<Uint32Array>
  setThreads(threads: number): void
}
interface AddonSampler extends Sampler {
  applyConfig(config: SamplerConfig): void
}
interface Addon {
  readonly context: AddonContext
  readonly AddonSampler: new (model: object) => AddonSampler
  readonly model: object
}

const contextMethods = [
  'initBatch',
  'addToBatch',
  'decodeBatch',
  'sampleToken',
  'removeTokenCellsFromSequence',
  'getSequenceKvCacheMinPosition',
  'saveSequenceStateToFile',
  'loadSequenceStateFromFile',
  'setThreads',
] as const satisfies readonly (keyof AddonContext)[]

/** Nothing where the library's inside is not as it is known here. */
function addonOf(llama: Llama, model: LlamaModel, context: LlamaContext): Addon | undefined {
  const { _ctx } = context as unknown as { _ctx?: Partial<AddonContext> }
  const { _model } = model as unknown as { _model?: object }
  const { _bindings } = llama as unknown as { _bindings?: Partial<Addon> }
  const { AddonSampler } = _bindings ?? {}
  const known =
    contextMethods.every((name) => typeof _ctx?.[name] === 'function') &&
    typeof _model === 'object' &&
    typeof AddonSampler?.prototype?.applyConfig === 'function' &&
    typeof AddonSampler.prototype.dispose === 'function'
  return known ? { context: _ctx as AddonContext, model: _model, AddonSampler } : undefined
}

/** As the app starts model processes. With more, drawing would begin beside the step that it draws from. */
const onePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

/** Where nothing is drawn behind a piece. */
const noOutput = new Uint32Array()

export function openDecoder(
  llama: Llama,
  model: LlamaModel,
  llamaContext: LlamaContext,
  sequences: number,
  chunkSize: number,
): Decoder | undefined {
  const addon = addonOf(llama, model, llamaContext)
  if (!addon) return undefined
  const { context, AddonSampler } = addon
  const { swaSize = Number.POSITIVE_INFINITY } = model.fileInsights
  let threads: { readonly answers: number; readonly prompts: number } | undefined
  // As many as another busy model leaves it: with more threads than cores, a step takes twenty times as long.
  const repeatableThreads = Math.min(llamaContext.idealThreads, shareOfCores(2))
  return {
    sequences,
    chunkSize,
    decode: async (pieces) => {
      context.initBatch(pieces.reduce((sum, { tokens }) => sum + tokens.length, 0))
      const outputs = pieces.map(
        ({ sequence, position, tokens, sampler }) =>
          context.addToBatch(
            sequence,
            position,
            Uint32Array.from(tokens),
            sampler ? Uint32Array.of(tokens.length - 1) : noOutput,
          )[0] ?? -1,
      )
      if (threads) {
        const isSpoken = pieces.every(({ tokens }) => tokens.length === 1)
        // For one token, attention over a long text is split among the threads: with another number, sums come out different.
        const isFixed = isSpoken && pieces.some(({ repeatable }) => repeatable)
        context.setThreads(isFixed ? repeatableThreads : isSpoken ? threads.answers : threads.prompts)
      }
      const decoded = context.decodeBatch()
      const draw = ({ sampler }: Piece, index: number): Promise<Token | Error> | undefined =>
        sampler &&
        context.sampleToken(outputs[index] as number, sampler as AddonSampler).then(
          (token) => (token === -1 ? new Error('no token is possible') : token),
          (cause: unknown) => new Error('drawing failed', { cause }),
        )
      // Behind it in the queue of the one pool thread: nobody has to come back here in between.
      const draws = onePoolThread ? Promise.all(pieces.map(draw)) : undefined
      // After a failure, too, they have to end first: their samplers are freed soon.
      await decoded.finally(() => draws)
      return draws ?? Promise.all(pieces.map(draw))
    },
    forget: (sequence, keep) => context.removeTokenCellsFromSequence(sequence, keep === 0 ? -1 : keep, -1),
    // Not every file says that its model looks at a window only; what has left it is gone.
    isWhole: (sequence) => context.getSequenceKvCacheMinPosition(sequence) === 0,
    save: (sequence, tokens, file) =>
      context.saveSequenceStateToFile(file, sequence, Uint32Array.from(tokens)),
    // What has left the window is not saved, and what is in it comes to lie in another order.
    loadsAlike: (length) => length <= swaSize,
    load: async (sequence, file) =>
      (await context.loadSequenceStateFromFile(file, sequence, llamaContext.contextSize)).length,
    setThreads: (answers, prompts) => {
      threads = { answers, prompts }
    },
    sampler: (draw, prompt) => {
      const sampler = new AddonSampler(addon.model)
      sampler.applyConfig(toSamplerConfig(draw, prompt))
      return sampler
    },
    isEnd: (token) => model.isEogToken(token),
  }
}

/** Recurrent models hold one state, and others only what is in their window. */
const canForget = ({ fileInsights: { isRecurrent, isHybrid, swaSize } }: LlamaModel): boolean =>
  !isRecurrent && !isHybrid && !swaSize

function snapshotsIn(folder: string): Snapshots {
  const snapshots = openSnapshots(folder)
  process.once('exit', () => snapshots.close())
  return snapshots
}

function toBias(
  { TokenBias }: typeof import('node-llama-cpp'),
  model: LlamaModel,
  pairs: Draw['bias'],
): NonNullable<SequenceEvaluateOptions['tokenBias']> {
  const tokenBias = new TokenBias(model.tokenizer)
  // Its own `set` leaves end tokens out in silence; the map behind it takes all.
  const { _biases } = tokenBias as unknown as { readonly _biases?: Map<number, number> }
  for (const [token, logit] of pairs) {
    if (_biases) _biases.set(token, logit)
    else tokenBias.set(token as Token, { logit })
  }
  return tokenBias
}

function beginning({ tokens: { bos, shouldPrependBosToken } }: LlamaModel): Token | undefined {
  return bos !== null && shouldPrependBosToken ? bos : undefined
}

/** As llama.cpp does it: word pieces stand between two tokens always. */
function ending({ tokens, vocabularyType, fileInfo }: LlamaModel): Token | undefined {
  if (vocabularyType === 'wpm') return tokens.sep ?? undefined
  // The library does not ask a model that begins with nothing.
  const ends = tokens.shouldAppendEosToken || fileInfo.metadata.tokenizer?.ggml?.add_eos_token === true
  return ends ? (tokens.eos ?? undefined) : undefined
}

function infillTokens({ tokens: { infill } }: LlamaModel): Binding['infill'] {
  const { prefix, suffix, middle } = infill
  return prefix !== null && suffix !== null && middle !== null ? { prefix, suffix, middle } : undefined
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
