/** Selects the pieces of prompts that are evaluated in the next prefill step. */
import { hasPromptLogprobs } from '../kv-cache/prompt-cache.ts'
import type { GenerationJob } from '../runner.ts'
import type { Decoder } from './decoder.ts'
import type { FairClock } from './fair-clock.ts'
import { isDecodedAlone, isShortPrefill, type RunningSequence, type StepInput } from './running-sequence.ts'

type PrefillDecoder = Pick<Decoder, 'chunkSize' | 'chunksAtOnce' | 'canTruncate'>

/** Tokens of a prompt, from index `from` to index `to` (exclusive). */
interface PrefillPiece {
  readonly from: number
  readonly to: number
  /** Whether no other sequence may share the prefill step. */
  readonly isAlone: boolean
  /** Maximum number of tokens in a prefill step that contains this piece. */
  readonly maxRows: number
}

/**
 * Maximum length of a piece with logprobs or guesses, in tokens. For each token, such a piece stores the logits of
 * the whole vocabulary.
 */
export const maxTargetRows = 64
/**
 * The prompt of the last step goes on until its tenant has used this much more time than another one, in ms.
 * Otherwise, short prompts would be interleaved, which delays all of them.
 */
const continueLeadMs = 30

/**
 * Selects the pieces for the next step, up to one chunk. The prompt of the tenant with the least time for
 * prefill comes first, and of this tenant, the prompt that has waited longest. Then come other prompts that
 * still fit. A lone sequence or several short prompts may fill more chunks, since many rows at once are faster.
 */
export function selectPrefill(
  active: readonly RunningSequence[],
  decoder: PrefillDecoder,
  clock: FairClock,
): readonly StepInput[] {
  const isOnly = active.length === 1
  const prefilling = active.filter(({ lastToken }) => lastToken === undefined)
  clock.setCompetitors(prefilling.map(({ job }) => job))
  const lastAt = Math.max(...prefilling.map((one) => (one.hasPrefilled ? one.prefilledAt : 0)))
  const timeOf = ({ job, hasPrefilled, prefilledAt }: RunningSequence): number =>
    clock.timeOf(job.tenant) - (hasPrefilled && prefilledAt === lastAt ? continueLeadMs / job.weight : 0)
  const compareTurns = (a: RunningSequence, b: RunningSequence): number =>
    timeOf(a) - timeOf(b) || a.prefilledAt - b.prefilledAt
  const inputs: StepInput[] = []
  let rows = 0
  for (const running of prefilling.sort(compareTurns)) {
    const { from, to, isAlone, maxRows } = nextPiece(running, decoder, isOnly)
    if (rows + to - from > maxRows || (isAlone && inputs.length > 0)) continue
    rows = isAlone ? Number.POSITIVE_INFINITY : rows + to - from
    inputs.push(toStepInput(running, from, to))
  }
  return inputs
}

/** Maximum number of tokens of this prompt in a chunk. Fewer if logprobs are requested. */
export const maxRowsOf = (job: GenerationJob, chunkSize: number): number =>
  hasPromptLogprobs(job) ? Math.min(chunkSize, maxTargetRows) : chunkSize

function nextPiece(running: RunningSequence, decoder: PrefillDecoder, isOnly: boolean): PrefillPiece {
  const { job, slot } = running
  const { chunkSize } = decoder
  // If the model cannot truncate, evaluation stops after each chunk, where a snapshot may be saved.
  const maxChunks = decoder.canTruncate ? decoder.chunksAtOnce : 1
  const from = slot.tokens.length
  const isSingle = hasPromptLogprobs(job) || isDecodedAlone(running)
  // After a breakpoint inside a chunk, a piece ends with this chunk. llama.cpp would split a longer piece at
  // other positions than the ends of chunks.
  const isAfterBreakpoint = slot.deterministicLength === from && from % chunkSize > 0
  const chunks = isOnly && !isSingle && !isAfterBreakpoint ? maxChunks : 1
  const to = computePieceEnd(from, nextPieceLimit(running, chunkSize), maxRowsOf(job, chunkSize), chunks)
  return {
    from,
    to,
    isAlone: isSingle || isCachedAt(running, to, chunkSize),
    maxRows: chunkSize * (isOnly || isShortPrefill(running, chunkSize) ? maxChunks : 1),
  }
}

function toStepInput(running: RunningSequence, from: number, to: number): StepInput {
  const { job, sampler } = running
  const { prompt, maxTokens } = job
  return {
    running,
    tokens: prompt.slice(from, to),
    isSampling: to === prompt.length && maxTokens > 0,
    ...(hasPromptLogprobs(job) && { targets: { tokens: prompt.slice(from + 1, to + 1), sampler } }),
  }
}

/**
 * Returns the latest end of the next piece: the next breakpoint, or the end of the prompt. If the breakpoint
 * is inside a chunk, and the piece starts before that chunk, the piece ends where that chunk starts.
 */
function nextPieceLimit({ job, slot, breakpoints }: RunningSequence, chunkSize: number): number {
  const from = slot.tokens.length
  const next = breakpoints.find(({ length }) => length > from)?.length
  if (next === undefined) return job.prompt.length
  const wholeChunks = next - (next % chunkSize)
  return wholeChunks > from ? wholeChunks : next
}

/**
 * Whether the state after this piece will be cached. Such a piece runs alone, since other sequences in the
 * step would change its logits.
 */
function isCachedAt({ slot, breakpoints }: RunningSequence, to: number, chunkSize: number): boolean {
  const { length: from } = slot.tokens
  const isEnd = to % chunkSize === 0 || breakpoints.some(({ length }) => length === to)
  return breakpoints.length > 0 && isEnd && slot.deterministicLength === from && to - from <= chunkSize
}

/**
 * Returns the end of the next piece: a multiple of the chunk size, or `length`. A piece of several chunks is
 * shortened by a chunk if less than a chunk would remain, since steps with few rows are slow.
 */
function computePieceEnd(from: number, length: number, chunkSize: number, chunks: number): number {
  const end = from - (from % chunkSize) + chunks * chunkSize
  const remaining = length - end
  if (remaining <= 0) return length
  return chunks > 1 && remaining < chunkSize ? end - chunkSize : end
}
