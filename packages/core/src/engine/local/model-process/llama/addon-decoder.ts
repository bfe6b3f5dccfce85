/**
 * Decodes several sequences in one batch through internals of node-llama-cpp. Its public API decodes one
 * sequence at a time.
 */
import type { Llama, LlamaContext, LlamaModel, Token } from 'node-llama-cpp'
import type { BatchEntry, CompiledGrammar, Decoder, Sample } from '../decoding/decoder.ts'
import type { SamplingParams } from '../decoding/sampling.ts'
import { coresPerProcess } from '../resources/cores.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { type Addon, addonOf } from './addon.ts'
import { findJsonTokens, JsonAutoClose, type JsonTokens } from './json-auto-close.ts'
import { TokenSampler } from './token-sampler.ts'

type DecoderSettings = Pick<LoadPlan, 'parallel' | 'chunkSize' | 'chunksAtOnce'>

/**
 * Whether libuv's pool has one thread. The app sets this for generative models. With more threads, sampling
 * could start before the end of the step that it samples from.
 */
const hasSinglePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

/**
 * On the CPU, flash attention over a long text is faster for `rows` rows than for fewer. The decoder adds
 * padding tokens and removes them after the step. Padding pays off if the number of tokens times their
 * position is at least `from`.
 */
const padding = { rows: 64, from: 64_000 }

/** A copy moves the memory of the whole context, which takes about as long as the evaluation of this part of it. */
const copiedPart = 1 / 32

/** Returns `undefined` if this version of node-llama-cpp has other internals. */
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
  /**
   * Cells of the KV cache outside the attention window are not saved. Cells inside are restored in another
   * order.
   */
  readonly windowSize: number
  readonly chunksAtOnce: number
  readonly minCopyLength: number
  chunkSize: number
  readonly #addon: Addon
  readonly #model: LlamaModel
  readonly #contextSize: number
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
    this.minCopyLength = this.canTruncate
      ? Math.max(chunkSize, contextSize * copiedPart)
      : Number.POSITIVE_INFINITY
    this.#addon = addon
    this.#model = model
    this.#contextSize = contextSize
    this.windowSize = swaSize ?? Number.POSITIVE_INFINITY
    this.#canPad = flashAttention && this.canTruncate && gpu === false && chunkSize === padding.rows
    // Leaves cores for a second busy model. With more threads than cores, a step takes twenty times as long.
    this.#deterministicThreads = Math.min(idealThreads, coresPerProcess(2))
  }

  async decode(entries: readonly BatchEntry[]): Promise<readonly (readonly (Sample | Error)[])[]> {
    const { context } = this.#addon
    const paddingTokens = this.#padEntries(entries)
    context.initBatch(entries.reduce((sum, entry) => sum + countRows(entry), paddingTokens.length))
    const outputs = entries.map((entry) => {
      const tokens = Uint32Array.from([...entry.tokens, ...(entry.guesses ?? []), ...paddingTokens])
      return context.addToBatch(entry.sequence, entry.position, tokens, outputRowsOf(entry))
    })
    this.#applyThreads(entries)
    const decoded = context.decodeBatch()
    const sampleEntry = (entry: BatchEntry, index: number) =>
      sampleOutputs(entry, outputs[index] as Uint32Array)
    // With a single pool thread, samples are queued behind the step. This saves a turn of the event loop.
    const samples = hasSinglePoolThread ? Promise.all(entries.map(sampleEntry)) : undefined
    // A failure is reported after the samples have ended, since the caller then frees their samplers.
    await decoded.finally(() => samples)
    const sampled = await (samples ?? Promise.all(entries.map(sampleEntry)))
    if (paddingTokens.length > 0)
      for (const entry of entries)
        context.removeTokenCellsFromSequence(entry.sequence, entry.position + countRows(entry), -1)
    return sampled
  }

  truncate(sequence: number, keep: number): boolean {
    return this.#addon.context.removeTokenCellsFromSequence(sequence, keep === 0 ? -1 : keep, -1)
  }

  /**
   * Asks the KV cache, since not every model file declares its attention window. Tokens that have left the
   * window are gone.
   */
  isComplete(sequence: number): boolean {
    return this.#addon.context.getSequenceKvCacheMinPosition(sequence) === 0
  }

  save(sequence: number, tokens: readonly Token[], file: string): Promise<number> {
    return this.#addon.context.saveSequenceStateToFile(file, sequence, Uint32Array.from(tokens))
  }

  async load(sequence: number, file: string): Promise<number> {
    return (await this.#addon.context.loadSequenceStateFromFile(file, sequence, this.#contextSize)).length
  }

  copy(from: number, to: number): Promise<number> {
    return this.#addon.context.copySequenceStateFromOtherSequence(to, from)
  }

  setThreads(decode: number, prefill: number): void {
    this.#threads = { decode, prefill }
  }

  createSampler(params: SamplingParams, prompt: readonly Token[], grammar?: CompiledGrammar): TokenSampler {
    const state = grammar?.createState()
    const autoClose = grammar && params.isJson ? this.#createAutoClose(grammar) : undefined
    return new TokenSampler(this.#addon, params, prompt, state, autoClose)
  }

  isEog(token: Token): boolean {
    return this.#model.isEogToken(token)
  }

  #createAutoClose(grammar: CompiledGrammar): JsonAutoClose | undefined {
    this.#jsonTokens ??= findJsonTokens(this.#model)
    const { AddonSampler } = this.#addon
    return (
      this.#jsonTokens &&
      new JsonAutoClose(this.#jsonTokens, AddonSampler, grammar.createState(), (token) => this.isEog(token))
    )
  }

  /**
   * Returns padding tokens for a step with one entry. A step with several entries gets none, since it is
   * seldom at the end of a long text.
   */
  #padEntries([entry, ...others]: readonly BatchEntry[]): readonly Token[] {
    const { position = 0, tokens = [] } = entry ?? {}
    const rows = entry ? countRows(entry) : 0
    const isSlow = rows < padding.rows && rows > 1 && rows * position >= padding.from
    const fits = position + padding.rows <= this.#contextSize
    if (!this.#canPad || !isSlow || !fits || others.length > 0) return []
    return Array<Token>(padding.rows - rows).fill(tokens[0] as Token)
  }

  #applyThreads(entries: readonly BatchEntry[]): void {
    if (!this.#threads) return
    const { decode, prefill } = this.#threads
    const isDecodeStep = entries.every((entry) => countRows(entry) === 1)
    // For a single token, attention over a long text is split among the threads. Their number then changes
    // the logits.
    const hasFixedThreads = isDecodeStep && entries.some(({ isDeterministic }) => isDeterministic)
    this.#addon.context.setThreads(
      hasFixedThreads ? this.#deterministicThreads : isDecodeStep ? decode : prefill,
    )
  }
}

const countRows = ({ tokens, guesses = [] }: BatchEntry): number => tokens.length + guesses.length

/** Returns the indices of the tokens whose logits are needed. */
function outputRowsOf({ tokens, guesses = [], sampler, targets }: BatchEntry): Uint32Array {
  const rows = targets ? [...targets.tokens.keys()] : []
  const sampled = [undefined, ...guesses].map((_, index) => tokens.length - 1 + index)
  return Uint32Array.from(sampler ? [...rows, ...sampled] : rows)
}

/** Starts synchronously. Resolves with an `Error` instead of rejecting. */
async function sampleOutputs(
  { guesses = [], sampler, targets }: BatchEntry,
  outputs: Uint32Array,
): Promise<readonly (Sample | Error)[]> {
  if (targets) {
    const failed = await (targets.sampler as TokenSampler).scoreTargets(targets.tokens, outputs)
    if (failed) return [failed]
  }
  const samples: (Sample | Error)[] = []
  if (!sampler) return samples
  // The logits after a wrong guess belong to another text.
  for (const [index, row] of outputs.slice(-1 - guesses.length).entries()) {
    const sample = await (sampler as TokenSampler).sample(row)
    samples.push(sample)
    if (sample instanceof Error || sample.token !== guesses[index]) break
  }
  return samples
}
