/** Steps of the model, over the library's inside: what is public puts one sequence after the other through it. */
import type { Llama, LlamaContext, LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import type { Decoder, Piece } from '../decoding/decoder.ts'
import { shareOfCores } from '../resources/machine-share.ts'
import type { Plan } from '../resources/memory.ts'
import { addonOf } from './addon.ts'
import { Closing, type Marks, marksOf } from './json-auto-close.ts'
import { Drawer } from './token-sampler.ts'

/** As the app starts model processes. With more, drawing would begin beside the step that it draws from. */
const onePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

/**
 * On the processor, flash attention over a long text is faster for so many tokens at a time than for fewer: what lacks is
 * filled up with tokens that are forgotten again. That pays from so many on, times what is before them.
 */
const filled = { rows: 64, from: 64_000 }

/** Nothing where the inside is not as it is known here. */
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
  const isEnd = (token: Token): boolean => model.isEogToken(token)
  let marks: Marks | undefined
  const closingIn = (state: LlamaGrammarEvaluationState): Closing | undefined => {
    marks ??= marksOf(model)
    return marks && new Closing(marks, addon.AddonSampler, state.clone(), isEnd)
  }
  const { flashAttention } = llamaContext
  const canFill = flashAttention && cutsBack(model) && llama.gpu === false && chunkSize === filled.rows
  /** Of one piece alone: several are as many tokens, and rather not at the end of a long text. */
  const fillingOf = ([piece, ...others]: readonly Piece[]): readonly Token[] => {
    const { position = 0, tokens = [] } = piece ?? {}
    const isSlow = tokens.length < filled.rows && tokens.length > 1 && tokens.length * position >= filled.from
    const fits = position + filled.rows <= llamaContext.contextSize
    if (!canFill || !isSlow || !fits || others.length > 0) return []
    return Array<Token>(filled.rows - tokens.length).fill(tokens[0] as Token)
  }
  return {
    sequences: parallel,
    cutsBack: cutsBack(model),
    chunkSize,
    chunksAtOnce,
    decode: async (pieces) => {
      const filling = fillingOf(pieces)
      context.initBatch(pieces.reduce((sum, { tokens }) => sum + tokens.length, filling.length))
      const outputs = pieces.map((piece) => {
        const tokens = Uint32Array.from([...piece.tokens, ...filling])
        return context.addToBatch(piece.sequence, piece.position, tokens, rowsOf(piece))
      })
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
      const all = await (draws ?? Promise.all(pieces.map(draw)))
      if (filling.length > 0)
        for (const { sequence, position, tokens } of pieces)
          context.removeTokenCellsFromSequence(sequence, position + tokens.length, -1)
      return all
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
      const state = grammar?.begin()
      const closing = state && draw.isJson ? closingIn(state) : undefined
      return new Drawer(addon, draw, prompt, state, closing)
    },
    isEnd,
  }
}

const cutsBack = ({ fileInsights: { isRecurrent, isHybrid, swaSize } }: LlamaModel): boolean =>
  !isRecurrent && !isHybrid && !swaSize

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
