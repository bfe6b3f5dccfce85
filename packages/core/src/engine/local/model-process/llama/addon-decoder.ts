/** Steps of the model, over the library's inside: what is public puts one sequence after the other through it. */
import type { Llama, LlamaContext, LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import type { BatchEntry, Decoder } from '../decoding/decoder.ts'
import { coresPerProcess } from '../resources/cores.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { addonOf } from './addon.ts'
import { findJsonTokens, JsonAutoClose, type JsonTokens } from './json-auto-close.ts'
import { TokenSampler } from './token-sampler.ts'

/** As the app starts model processes. With more, drawing would begin beside the step that it draws from. */
const hasSinglePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

/**
 * On the processor, flash attention over a long text is faster for so many tokens at a time than for fewer: what lacks is
 * filled up with tokens that are forgotten again. That pays from so many on, times what is before them.
 */
const padding = { rows: 64, from: 64_000 }

/** Nothing where the inside is not as it is known here. */
export function openDecoder(
  llama: Llama,
  model: LlamaModel,
  llamaContext: LlamaContext,
  { parallel, chunkSize, chunksAtOnce }: Pick<LoadPlan, 'parallel' | 'chunkSize' | 'chunksAtOnce'>,
): Decoder | undefined {
  const addon = addonOf(llama, model, llamaContext)
  if (!addon) return undefined
  const { context } = addon
  const { swaSize = Number.POSITIVE_INFINITY } = model.fileInsights
  let threads: { readonly answers: number; readonly prompts: number } | undefined
  // As many as another busy model leaves it: with more threads than cores, a step takes twenty times as long.
  const repeatableThreads = Math.min(llamaContext.idealThreads, coresPerProcess(2))
  const isEog = (token: Token): boolean => model.isEogToken(token)
  let jsonTokens: JsonTokens | undefined
  const createAutoClose = (state: LlamaGrammarEvaluationState): JsonAutoClose | undefined => {
    jsonTokens ??= findJsonTokens(model)
    return jsonTokens && new JsonAutoClose(jsonTokens, addon.AddonSampler, state.clone(), isEog)
  }
  const { flashAttention } = llamaContext
  const canPad = flashAttention && canTruncate(model) && llama.gpu === false && chunkSize === padding.rows
  /** Of one piece alone: several are as many tokens, and rather not at the end of a long text. */
  const padEntries = ([piece, ...others]: readonly BatchEntry[]): readonly Token[] => {
    const { position = 0, tokens = [] } = piece ?? {}
    const isSlow =
      tokens.length < padding.rows && tokens.length > 1 && tokens.length * position >= padding.from
    const fits = position + padding.rows <= llamaContext.contextSize
    if (!canPad || !isSlow || !fits || others.length > 0) return []
    return Array<Token>(padding.rows - tokens.length).fill(tokens[0] as Token)
  }
  return {
    sequenceCount: parallel,
    canTruncate: canTruncate(model),
    chunkSize,
    chunksAtOnce,
    decode: async (pieces) => {
      const paddingTokens = padEntries(pieces)
      context.initBatch(pieces.reduce((sum, { tokens }) => sum + tokens.length, paddingTokens.length))
      const outputs = pieces.map((piece) => {
        const tokens = Uint32Array.from([...piece.tokens, ...paddingTokens])
        return context.addToBatch(piece.sequence, piece.position, tokens, outputRowsOf(piece))
      })
      if (threads) {
        const isDecodeStep = pieces.every(({ tokens }) => tokens.length === 1)
        // For one token, attention over a long text is split among the threads: with another number, sums come out different.
        const hasFixedThreads = isDecodeStep && pieces.some(({ isDeterministic }) => isDeterministic)
        context.setThreads(
          hasFixedThreads ? repeatableThreads : isDecodeStep ? threads.answers : threads.prompts,
        )
      }
      const decoded = context.decodeBatch()
      const sampleEntry = (piece: BatchEntry, index: number) =>
        sampleOutputs(piece, outputs[index] as Uint32Array)
      // Behind it in the queue of the one pool thread: nobody has to come back here in between.
      const samples = hasSinglePoolThread ? Promise.all(pieces.map(sampleEntry)) : undefined
      // After a failure, too, they have to end first: their samplers are freed soon.
      await decoded.finally(() => samples)
      const all = await (samples ?? Promise.all(pieces.map(sampleEntry)))
      if (paddingTokens.length > 0)
        for (const { sequence, position, tokens } of pieces)
          context.removeTokenCellsFromSequence(sequence, position + tokens.length, -1)
      return all
    },
    truncate: (sequence, keep) => context.removeTokenCellsFromSequence(sequence, keep === 0 ? -1 : keep, -1),
    // Not every file says that its model looks at a window only; what has left it is gone.
    isComplete: (sequence) => context.getSequenceKvCacheMinPosition(sequence) === 0,
    save: (sequence, tokens, file) =>
      context.saveSequenceStateToFile(file, sequence, Uint32Array.from(tokens)),
    // What has left the window is not saved, and what is in it comes to lie in another order.
    isRestoreExact: (length) => length <= swaSize,
    load: async (sequence, file) =>
      (await context.loadSequenceStateFromFile(file, sequence, llamaContext.contextSize)).length,
    setThreads: (answers, prompts) => {
      threads = { answers, prompts }
    },
    createSampler: (params, prompt, grammar) => {
      const state = grammar?.createState()
      const autoClose = state && params.isJson ? createAutoClose(state) : undefined
      return new TokenSampler(addon, params, prompt, state, autoClose)
    },
    isEog,
  }
}

const canTruncate = ({ fileInsights: { isRecurrent, isHybrid, swaSize } }: LlamaModel): boolean =>
  !isRecurrent && !isHybrid && !swaSize

/** Behind which tokens of a piece logits are kept. */
function outputRowsOf({ tokens, sampler, targets }: BatchEntry): Uint32Array {
  const rows = targets ? [...targets.tokens.keys()] : []
  return Uint32Array.from(sampler ? [...rows, tokens.length - 1] : rows)
}

/** Begins at once, and never rejects. */
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
