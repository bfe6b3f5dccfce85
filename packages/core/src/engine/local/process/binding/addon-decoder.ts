/** Steps of the model, over the library's inside: what is public puts one sequence after the other through it. */
import type { Llama, LlamaContext, LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import type { Decoder, Piece } from '../decoder.ts'
import type { Plan } from '../memory.ts'
import { shareOfCores } from '../presence.ts'
import { addonOf } from './addon.ts'
import { Closing, type Marks, marksOf } from './closing.ts'
import { Drawer } from './drawer.ts'

/** As the app starts model processes. With more, drawing would begin beside the step that it draws from. */
const onePoolThread = process.env.UV_THREADPOOL_SIZE === '1'

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
  return {
    sequences: parallel,
    cutsBack: cutsBack(model),
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
