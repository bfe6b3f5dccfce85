/** Decodes batches of several sequences through node-llama-cpp's internals. Its public API decodes one at a time. */
import type { Llama, LlamaContext, LlamaModel, Token } from 'node-llama-cpp'
import type { BatchEntry, CompiledGrammar, Decoder } from '../decoding/decoder.ts'
import type { SamplingParams } from '../decoding/sampling.ts'
import { coresPerProcess } from '../resources/cores.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { type Addon, addonOf } from './addon.ts'
import { findJsonTokens, JsonAutoClose, type JsonTokens } from './json-auto-close.ts'
import { TokenSampler } from './token-sampler.ts'

type DecoderSettings = Pick<LoadPlan, 'parallel' | 'chunkSize' | 'chunksAtOnce'>

/** Set by the app for model processes. With more threads, sampling would start beside the step that it samples from. */
const hasSinglePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

/**
 * On the CPU, flash attention over a long text is faster for this many rows than for fewer. Missing rows are filled with
 * tokens that are removed again. That pays when the number of rows times the position exceeds `from`.
 */
const padding = { rows: 64, from: 64_000 }

/** Returns `undefined` where this version of node-llama-cpp has other internals. */
export function openDecoder(
  llama: Llama,
  model: LlamaModel,
  context: LlamaContext,
  settings: DecoderSettings,
): Decoder | undefined {
  const addon = addonOf(llama, model, context)
  return addon && new AddonDecoder(addon, llama, model, context, settings)
}

class AddonDecoder implements Decoder {
  readonly sequenceCount: number
  readonly canTruncate: boolean
  readonly chunksAtOnce: number
  chunkSize: number
  readonly #addon: Addon
  readonly #model: LlamaModel
  readonly #contextSize: number
  readonly #windowSize: number
  readonly #canPad: boolean
  readonly #deterministicThreads: number
  #threads: { readonly decode: number; readonly prefill: number } | undefined
  #jsonTokens: JsonTokens | undefined

  constructor(
    addon: Addon,
    { gpu }: Llama,
    model: LlamaModel,
    { contextSize, idealThreads, flashAttention }: LlamaContext,
    { parallel, chunkSize, chunksAtOnce }: DecoderSettings,
  ) {
    const { isRecurrent, isHybrid, swaSize } = model.fileInsights
    this.sequenceCount = parallel
    this.canTruncate = !isRecurrent && !isHybrid && !swaSize
    this.chunkSize = chunkSize
    this.chunksAtOnce = chunksAtOnce
    this.#addon = addon
    this.#model = model
    this.#contextSize = contextSize
    this.#windowSize = swaSize ?? Number.POSITIVE_INFINITY
    this.#canPad = flashAttention && this.canTruncate && gpu === false && chunkSize === padding.rows
    // As many as a second busy model leaves: with more threads than cores, a step takes twenty times as long.
    this.#deterministicThreads = Math.min(idealThreads, coresPerProcess(2))
  }

  async decode(entries: readonly BatchEntry[]): Promise<readonly (Token | Error | undefined)[]> {
    const { context } = this.#addon
    const paddingTokens = this.#padEntries(entries)
    context.initBatch(entries.reduce((sum, { tokens }) => sum + tokens.length, paddingTokens.length))
    const outputs = entries.map((entry) => {
      const tokens = Uint32Array.from([...entry.tokens, ...paddingTokens])
      return context.addToBatch(entry.sequence, entry.position, tokens, outputRowsOf(entry))
    })
    this.#applyThreads(entries)
    const decoded = context.decodeBatch()
    const sampleEntry = (entry: BatchEntry, index: number) =>
      sampleOutputs(entry, outputs[index] as Uint32Array)
    // Queued behind the step on the one pool thread, which saves a turn of the event loop in between.
    const samples = hasSinglePoolThread ? Promise.all(entries.map(sampleEntry)) : undefined
    // They end before a failure is reported, since their samplers are freed then.
    await decoded.finally(() => samples)
    const sampled = await (samples ?? Promise.all(entries.map(sampleEntry)))
    if (paddingTokens.length > 0)
      for (const { sequence, position, tokens } of entries)
        context.removeTokenCellsFromSequence(sequence, position + tokens.length, -1)
    return sampled
  }

  truncate(sequence: number, keep: number): boolean {
    return this.#addon.context.removeTokenCellsFromSequence(sequence, keep === 0 ? -1 : keep, -1)
  }

  /** Asks the KV cache: not every model file names its attention window, and what has left the window is gone. */
  isComplete(sequence: number): boolean {
    return this.#addon.context.getSequenceKvCacheMinPosition(sequence) === 0
  }

  save(sequence: number, tokens: readonly Token[], file: string): Promise<number> {
    return this.#addon.context.saveSequenceStateToFile(file, sequence, Uint32Array.from(tokens))
  }

  /** Cells outside the window are not saved, and those inside are restored in another order. */
  isRestoreExact(length: number): boolean {
    return length <= this.#windowSize
  }

  async load(sequence: number, file: string): Promise<number> {
    return (await this.#addon.context.loadSequenceStateFromFile(file, sequence, this.#contextSize)).length
  }

  setThreads(decode: number, prefill: number): void {
    this.#threads = { decode, prefill }
  }

  createSampler(params: SamplingParams, prompt: readonly Token[], grammar?: CompiledGrammar): TokenSampler {
    const state = grammar?.createState()
    const autoClose = state && params.isJson ? this.#createAutoClose(state) : undefined
    return new TokenSampler(this.#addon, params, prompt, state, autoClose)
  }

  isEog(token: Token): boolean {
    return this.#model.isEogToken(token)
  }

  #createAutoClose(state: ReturnType<CompiledGrammar['createState']>): JsonAutoClose | undefined {
    this.#jsonTokens ??= findJsonTokens(this.#model)
    const { AddonSampler } = this.#addon
    return (
      this.#jsonTokens &&
      new JsonAutoClose(this.#jsonTokens, AddonSampler, state.clone(), (token) => this.isEog(token))
    )
  }

  /** Fills up an only entry. Several are seldom at the end of a long text. */
  #padEntries([entry, ...others]: readonly BatchEntry[]): readonly Token[] {
    const { position = 0, tokens = [] } = entry ?? {}
    const isSlow =
      tokens.length < padding.rows && tokens.length > 1 && tokens.length * position >= padding.from
    const fits = position + padding.rows <= this.#contextSize
    if (!this.#canPad || !isSlow || !fits || others.length > 0) return []
    return Array<Token>(padding.rows - tokens.length).fill(tokens[0] as Token)
  }

  #applyThreads(entries: readonly BatchEntry[]): void {
    if (!this.#threads) return
    const { decode, prefill } = this.#threads
    const isDecodeStep = entries.every(({ tokens }) => tokens.length === 1)
    // For one token, attention over a long text is split among the threads, so their number changes the logits.
    const hasFixedThreads = isDecodeStep && entries.some(({ isDeterministic }) => isDeterministic)
    this.#addon.context.setThreads(
      hasFixedThreads ? this.#deterministicThreads : isDecodeStep ? decode : prefill,
    )
  }
}

/** Indices of the tokens whose logits are needed. */
function outputRowsOf({ tokens, sampler, targets }: BatchEntry): Uint32Array {
  const rows = targets ? [...targets.tokens.keys()] : []
  return Uint32Array.from(sampler ? [...rows, tokens.length - 1] : rows)
}

/** Starts at once, and never rejects. */
function sampleOutputs(
  { sampler, targets }: BatchEntry,
  outputs: Uint32Array,
): Promise<Token | Error | undefined> {
  const next = async () => (sampler as TokenSampler | undefined)?.sample(outputs.at(-1) as number)
  return targets
    ? (targets.sampler as TokenSampler)
        .scoreTargets(targets.tokens, outputs)
        .then((failed) => failed ?? next())
    : next()
}
