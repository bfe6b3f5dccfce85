/** Which pieces of which prompts are evaluated in the next prefill step. */
import { hasPromptLogprobs } from '../kv-cache/prompt-cache.ts'
import type { GenerationJob } from '../runner.ts'
import type { Decoder } from './decoder.ts'
import { isDecodedAlone, isShortPrefill, type RunningSequence, type StepInput } from './running-sequence.ts'

type PrefillDecoder = Pick<Decoder, 'chunkSize' | 'chunksAtOnce' | 'canTruncate'>

/** Tokens `from` to `to` of a prompt. */
interface PrefillPiece {
  readonly from: number
  readonly to: number
  /** Whether no other sequence may share the step. */
  readonly isAlone: boolean
  /** Rows that the step may have with this piece in it. */
  readonly maxRows: number
}

/** Piece size of a prompt whose logprobs are requested: each token keeps the logits of the whole vocabulary. */
const maxTargetRows = 64

/**
 * One chunk: of the prompt that has waited longest, and of others as much as still fits. An only sequence and short
 * prompts take several chunks, since many rows at once are faster.
 */
export function selectPrefill(
  active: readonly RunningSequence[],
  decoder: PrefillDecoder,
): readonly StepInput[] {
  const isOnly = active.length === 1
  const prefilling = active.filter(({ lastToken }) => lastToken === undefined)
  const inputs: StepInput[] = []
  let rows = 0
  for (const running of prefilling.sort((a, b) => a.prefilledAt - b.prefilledAt)) {
    const { from, to, isAlone, maxRows } = nextPiece(running, decoder, isOnly)
    if (rows + to - from > maxRows || (isAlone && inputs.length > 0)) continue
    rows = isAlone ? Number.POSITIVE_INFINITY : rows + to - from
    inputs.push(toStepInput(running, from, to))
  }
  return inputs
}

/** Rows of this job's prompt that are evaluated at once. */
export const maxRowsOf = (job: GenerationJob, chunkSize: number): number =>
  hasPromptLogprobs(job) ? Math.min(chunkSize, maxTargetRows) : chunkSize

function nextPiece(running: RunningSequence, decoder: PrefillDecoder, isOnly: boolean): PrefillPiece {
  const { job, slot } = running
  const { chunkSize } = decoder
  // Snapshots are saved between two chunks.
  const maxChunks = decoder.canTruncate ? decoder.chunksAtOnce : 1
  const from = slot.tokens.length
  const isSingle = hasPromptLogprobs(job) || isDecodedAlone(running)
  // After a breakpoint inside a chunk, llama.cpp would divide several chunks in other places.
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

/** The next breakpoint, or the end of the prompt. Less than a chunk before a breakpoint is a piece of its own. */
function nextPieceLimit({ job, slot, breakpoints }: RunningSequence, chunkSize: number): number {
  const from = slot.tokens.length
  const next = breakpoints.find(({ length }) => length > from)?.length
  if (next === undefined) return job.prompt.length
  const wholeChunks = next - (next % chunkSize)
  return wholeChunks > from ? wholeChunks : next
}

/** Whether the state after this piece will be cached: beside other sequences, its logits would differ. */
function isCachedAt({ slot, breakpoints }: RunningSequence, to: number, chunkSize: number): boolean {
  const { length: from } = slot.tokens
  const isEnd = to % chunkSize === 0 || breakpoints.some(({ length }) => length === to)
  return breakpoints.length > 0 && isEnd && slot.deterministicLength === from && to - from <= chunkSize
}

/** At a multiple of chunks. Few rows are slow, so the last of several chunks is left to the remainder after it. */
function computePieceEnd(from: number, length: number, chunkSize: number, chunks: number): number {
  const end = from - (from % chunkSize) + chunks * chunkSize
  const remaining = length - end
  if (remaining <= 0) return length
  return chunks > 1 && remaining < chunkSize ? end - chunkSize : end
}
