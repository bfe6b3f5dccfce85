/** The model as the rest of this folder sees it. The only file that loads node-llama-cpp; the others know its types. */
import { basename } from 'node:path'
import type {
  GgufInsights,
  Llama,
  LlamaContext,
  LlamaGrammarEvaluationState,
  LlamaModel,
  LlamaModelOptions,
  Token,
  TokenBias,
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
import { type Draw, type SamplerConfig, toProbeConfig, toSamplerConfig } from './sampling.ts'
import { type Decoder, type Odds, type Piece, type Runner, type Sampler, Scheduler } from './scheduler.ts'
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

/** What an answer is held to, ready to be used. */
export interface Grammar {
  /** Where an answer begins. */
  begin(): LlamaGrammarEvaluationState
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
  /** Of GBNF. Throws `invalid_request` where native code refuses it. */
  grammar(source: string): Promise<Grammar>
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
  /** As the vocabulary of the file has it. */
  written(token: Token): string
  /** All tokens that end an answer. */
  ends(): readonly Token[]
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
    const llama = await library.getLlama({ ...quietly(library), maxThreads: config.threads })
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
    const { adapters = [] } = config
    if (purpose !== 'text' && adapters.length > 0) throw notAdaptable(config.modelName)
    if (purpose !== 'text') return await reader(config, model, plan, purpose)
    const context = await model.createContext({
      contextSize,
      sequences: parallel,
      threads: config.threads,
      batchSize: plan.batchSize,
      flashAttention: plan.flashAttention,
      experimentalKvCacheKeyType: cacheTypes[plan.kvCacheType],
      experimentalKvCacheValueType: cacheTypes[plan.kvCacheType],
      lora: { adapters: adapters.map(({ path, scale }) => ({ filePath: path, scale })) },
    })
    const decoder = open(llama, model, context, plan)
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
      grammar: compiler(library, llama, model),
      reading: undefined,
      limitThreads,
    }
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    if (cause instanceof library.NoBinaryFoundError)
      throw upstream(missingBuild(await library.getModuleVersion()), cause)
    const reason = cause instanceof Error ? withoutPaths(cause.message, config) : String(cause)
    throw upstream(`The model "${config.modelName}" could not be loaded: ${reason}`, cause)
  }
}

/** What does not depend on what the model is made for. */
function about(
  config: ProcessConfig,
  model: LlamaModel,
  { contextSize, need, mappedBytes, notes }: Plan,
): Omit<Binding, 'parallel' | 'stepMs' | 'runner' | 'grammar' | 'reading' | 'limitThreads'> {
  const tokenizer = new Tokenizer((text) => model.tokenize(text, true), contextSize)
  const plainly = new Tokenizer((text) => model.tokenize(text), contextSize)
  let ends: readonly Token[] | undefined
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
    written: (token) => model.fileInfo.metadata.tokenizer?.ggml?.tokens?.[token] ?? '',
    ends: () => (ends ??= [...model.iterateAllTokens()].filter((token) => model.isEogToken(token))),
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
    grammar: () => Promise.reject(notForChat(config.modelName)),
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

/** Never a compiler or a download in somebody's server. */
const quietly = ({ LlamaLogLevel }: typeof import('node-llama-cpp')) =>
  ({
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
  }) as const

const withoutPaths = (message: string, { modelPath, adapters = [] }: ProcessConfig): string =>
  adapters.reduce(
    (text, { path }) => text.replaceAll(path, basename(path)),
    message.replaceAll(modelPath, 'the file'),
  )

const notAdaptable = (name: string): LlmError =>
  upstream(
    `The model "${name}" reads texts, and cannot have adapters: they are for models that write.`,
    undefined,
  )

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
  sampleToken(
    output: number,
    sampler: AddonSampler,
    probabilities: false,
    confidence: false,
    /** Of which tokens: these, the likeliest, the least likely, the drawn one, and so many of the likeliest. */
    logits: readonly [readonly Token[], boolean, boolean, boolean, number],
    totalWeight: boolean,
  ): Promise<Probed>
  removeTokenCellsFromSequence(sequence: number, from: number, to: number): boolean
  /** -1 where it holds nothing. */
  getSequenceKvCacheMinPosition(sequence: number): number
  saveSequenceStateToFile(file: string, sequence: number, tokens: Uint32Array): Promise<number>
  loadSequenceStateFromFile(file: string, sequence: number, contextSize: number): Promise<Uint32Array>
  setThreads(threads: number): void
}
interface AddonSampler {
  applyConfig(config: SamplerConfig): void
  dispose(): void
}
/** Logits behind the ids of their tokens; the total weight counts the likeliest token as 1. */
type Probed = readonly [
  token: Token | -1,
  probabilities: undefined,
  confidence: undefined,
  logits: readonly number[],
  totalWeight?: number,
]
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

/** Behind which tokens of a piece logits are kept. */
function rowsOf({ tokens, sampler, followers }: Piece): Uint32Array {
  const rows = followers ? [...followers.tokens.keys()] : []
  return Uint32Array.from(sampler ? [...rows, tokens.length - 1] : rows)
}

/** Begins at once, and never rejects. */
function drawn({ sampler, followers }: Piece, outputs: Uint32Array): Promise<Token | Error | undefined> {
  const next = async () => (sampler as Drawer | undefined)?.next(outputs.at(-1) as number)
  return followers
    ? (followers.sampler as Drawer).weigh(followers.tokens, outputs).then((failed) => failed ?? next())
    : next()
}

export function openDecoder(
  llama: Llama,
  model: LlamaModel,
  llamaContext: LlamaContext,
  { parallel, chunkSize, chunksAtOnce }: Pick<Plan, 'parallel' | 'chunkSize' | 'chunksAtOnce'>,
): Decoder | undefined {
  const addon = addonOf(llama, model, llamaContext)
  if (!addon) return undefined
  const { context } = addon
  const { swaSize = Number.POSITIVE_INFINITY } = model.fileInsights
  let threads: { readonly answers: number; readonly prompts: number } | undefined
  // As many as another busy model leaves it: with more threads than cores, a step takes twenty times as long.
  const repeatableThreads = Math.min(llamaContext.idealThreads, shareOfCores(2))
  return {
    sequences: parallel,
    chunkSize,
    chunksAtOnce,
    decode: async (pieces) => {
      context.initBatch(pieces.reduce((sum, { tokens }) => sum + tokens.length, 0))
      const outputs = pieces.map((piece) =>
        context.addToBatch(piece.sequence, piece.position, Uint32Array.from(piece.tokens), rowsOf(piece)),
      )
      if (threads) {
        const isSpoken = pieces.every(({ tokens }) => tokens.length === 1)
        // For one token, attention over a long text is split among the threads: with another number, sums come out different.
        const isFixed = isSpoken && pieces.some(({ repeatable }) => repeatable)
        context.setThreads(isFixed ? repeatableThreads : isSpoken ? threads.answers : threads.prompts)
      }
      const decoded = context.decodeBatch()
      const draw = (piece: Piece, index: number) => drawn(piece, outputs[index] as Uint32Array)
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
    sampler: (draw, prompt, grammar) => {
      const state = grammar && stateOf(grammar.begin())
      const held = state && { grammarEvaluationState: state }
      return new Drawer(addon, draw, (drawn) => ({ ...toSamplerConfig(draw, prompt, drawn), ...held }))
    },
    isEnd: (token) => model.isEogToken(token),
  }
}

/** The library's inside again. Throws rather than let an answer be free. */
function stateOf(begun: LlamaGrammarEvaluationState): object {
  const { _state } = begun as unknown as { readonly _state?: object }
  if (!_state) throw upstream('The engine cannot hold answers to grammars.', undefined)
  return _state
}

/** So many are kept, since the same are asked for again and again. */
const keptGrammars = 16

/** Each answer goes on from a copy of what was parsed once. */
function compiler(
  { LlamaGrammarEvaluationState: State }: typeof import('node-llama-cpp'),
  llama: Llama,
  model: LlamaModel,
): Binding['grammar'] {
  const kept = new Map<string, Grammar>()
  return async (source) => {
    const known = kept.get(source) ?? (await compile(source))
    kept.delete(source)
    kept.set(source, known)
    for (const [oldest] of kept) if (kept.size > keptGrammars) kept.delete(oldest)
    return known
  }
  async function compile(source: string): Promise<Grammar> {
    try {
      const beginning = new State({ model, grammar: await llama.createGrammar({ grammar: source }) })
      return { begin: () => new State(beginning) }
    } catch (cause) {
      throw new LlmError('invalid_request', 'The engine refuses this grammar.', { issue: 'value' }, { cause })
    }
  }
}

/** Draws the tokens of one answer. What it draws from is not what the model says: probes look at that. */
class Drawer implements Sampler {
  odds: Odds | undefined
  followerOdds: readonly Odds[] | undefined
  readonly #addon: Addon
  readonly #draw: Draw
  readonly #configAt: (drawn: readonly Token[]) => SamplerConfig
  readonly #drawn: Token[] = []
  readonly #sampler: AddonSampler
  /** Of all tokens, and of the likeliest. One that does both would sort the whole vocabulary. */
  readonly #probes: readonly AddonSampler[]

  /** @param configAt of an answer that has these tokens */
  constructor(addon: Addon, draw: Draw, configAt: (drawn: readonly Token[]) => SamplerConfig) {
    this.#addon = addon
    this.#draw = draw
    this.#configAt = configAt
    const { logprobs } = draw
    const tops = logprobs === undefined ? [] : logprobs === 0 ? [0] : [0, logprobs]
    this.#sampler = samplerOf(addon, configAt([]))
    this.#probes = tops.map((top) => samplerOf(addon, toProbeConfig(draw, top)))
  }

  /** Begins at once, and never rejects. */
  async next(output: number): Promise<Token | Error> {
    try {
      const token = await this.#addon.context.sampleToken(output, this.#sampler)
      if (token === -1) return new Error('no token is possible')
      this.#count(token)
      this.odds = await this.#oddsOf(token, output)
      return token
    } catch (cause) {
      return new Error('drawing failed', { cause })
    }
  }

  /** One row after the other: a probe looks at one at a time. Begins at once, and never rejects. */
  async weigh(followers: readonly Token[], outputs: Uint32Array): Promise<Error | undefined> {
    try {
      const all: Odds[] = []
      for (const [row, token] of followers.entries()) {
        const odds = await this.#oddsOf(token, outputs[row] as number)
        if (odds) all.push(odds)
      }
      this.followerOdds = all
      return undefined
    } catch (cause) {
      return new Error('the odds of a prompt are not known', { cause })
    }
  }

  dispose(): void {
    for (const sampler of [this.#sampler, ...this.#probes]) sampler.dispose()
  }

  /** Up to the end of a ban, which may have none. */
  #count(token: Token): void {
    const { until = 0 } = this.#draw.ban ?? {}
    if (this.#drawn.length >= until || until === Number.POSITIVE_INFINITY) return
    this.#drawn.push(token)
    if (this.#drawn.length === until) this.#sampler.applyConfig(this.#configAt(this.#drawn))
  }

  async #oddsOf(token: Token, output: number): Promise<Odds | undefined> {
    const [all, likeliest] = this.#probes
    if (!all) return undefined
    const { context } = this.#addon
    const [weighed, ranked] = await Promise.all([
      context.sampleToken(output, all, false, false, [[token], false, false, true, 0], true),
      likeliest &&
        context.sampleToken(
          output,
          likeliest,
          false,
          false,
          [[], false, false, false, this.#draw.logprobs ?? 0],
          false,
        ),
    ])
    return toOdds(token, weighed, ranked)
  }
}

function samplerOf({ AddonSampler, model }: Addon, config: SamplerConfig): AddonSampler {
  const sampler = new AddonSampler(model)
  sampler.applyConfig(config)
  return sampler
}

/** Throws where the model said something that is no number. */
function toOdds(token: Token, [, , , weighed, totalWeight = 0]: Probed, ranked: Probed | undefined): Odds {
  const logits = pairs(weighed)
  const base = Math.max(...logits.map(([, logit]) => logit)) + Math.log(totalWeight)
  const toLogprob = ([id, logit]: readonly [Token, number]) => [id, logit - base] as const
  const logprob = logits.map(toLogprob).find(([id]) => id === token)?.[1] ?? Number.NaN
  if (!Number.isFinite(logprob)) throw new Error('the odds are no numbers')
  const top = pairs(ranked?.[3] ?? []).map(toLogprob)
  return { logprob, top: top.filter(([, logprob]) => Number.isFinite(logprob)) }
}

const pairs = (flat: readonly number[]): (readonly [Token, number])[] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as Token, flat[2 * at + 1] as number])

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
): TokenBias {
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

type Renderer = new (source: string) => { render(variables: object): string }

/**
 * Fills templates; a bad one ends the process. Without a model, and with nothing on a graphics card.
 * The library's inside once more: nothing where it is not as it is known here.
 */
export async function openNativeTemplates(): Promise<
  ((source: string, variables: object) => string) | undefined
> {
  const library = await importLibrary()
  const llama = await library.getLlama({ ...quietly(library), dryRun: true, vramPadding: 0 })
  const { AddonJinjaRenderer: Known } = (llama as unknown as { _bindings: { AddonJinjaRenderer?: Renderer } })
    ._bindings
  if (typeof Known?.prototype?.render !== 'function') return undefined
  return (source, variables) => new Known(source).render(variables)
}

/** Those that the tokenizer finds in a text, though they are none: unlike those that a vocabulary defines for itself. */
function specialTokens(model: LlamaModel): readonly string[] {
  const spellings: string[] = []
  for (const token of model.iterateAllTokens()) {
    const { control, unknown } = model.getTokenAttributes(token)
    if (control || unknown) spellings.push(model.detokenize([token], true))
  }
  return spellings
}

function chatTemplate(model: LlamaModel): ChatTemplate {
  const { bosString, eosString } = model.tokens
  return {
    source: model.fileInfo.metadata.tokenizer?.chat_template ?? chatMl,
    bosToken: bosString ?? '',
    eosToken: eosString ?? '',
    specialTokens: specialTokens(model),
  }
}

function vocabularySize(model: LlamaModel): number {
  let size = 0
  for (const _token of model.iterateAllTokens()) size++
  return size
}
