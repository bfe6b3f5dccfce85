/** Sequences keep their tokens: what a prompt has in common with the last one need not be read again. */
import type { Token } from 'node-llama-cpp'
import type { SequenceState } from './sequence-state.ts'

export interface Slot {
  /** Of the sequence. */
  readonly id: number
  /** What its state was made from, in order. */
  tokens: Token[]
  /** How many of them were read in whole chunks from the start, or up to stops: that state is the same each time. */
  deterministicLength: number
  /** Where its prompt was read up to, though a chunk does not end there. */
  pieceEnds: number[]
  /** How long the prompt was that was read last. */
  promptLength: number
  /** Whose they are. */
  tenant: string | undefined
  /** Counts up with every use. */
  usedAt: number
  isBusy: boolean
}

export interface SlotMatch {
  readonly slot: Slot
  /** So many of the prompt's tokens need not be read again; at least one always is. */
  readonly matchLength: number
  /** Whose the slot was before. */
  readonly previousTenant: string | undefined
}

export interface SlotRequest {
  readonly prompt: readonly Token[]
  /** Tokens are never shared between tenants: how long an answer takes would tell what others asked. */
  readonly tenant: string
  /** The answer has to be the same as from an empty slot. */
  readonly isDeterministic: boolean
  /** What is read ends there, too, though a chunk does not. */
  readonly pieceEnds: readonly number[]
  /** Not more than so many tokens are to be reused. @default all but the last */
  readonly maxReuse?: number | undefined
}

/** Whether so many tokens are read in the same pieces with these stops as with others. */
export const hasSamePieces = (some: readonly number[], others: readonly number[], length: number): boolean =>
  differingEnds(some, others).every((stop) => stop > length)

const differingEnds = (some: readonly number[], others: readonly number[]): readonly number[] =>
  [...some, ...others].filter((stop) => !(some.includes(stop) && others.includes(stop)))

/** How many tokens two texts begin with alike. */
export function commonPrefixLength(
  some: readonly Token[],
  others: readonly Token[],
  limit = some.length,
): number {
  let length = 0
  while (length < limit && length < some.length && some[length] === others[length]) length++
  return length
}

/** So much of a prompt's end belongs to one answer alone: a template's `<think>`, say, which history leaves out. */
export const volatileTailTokens = 8

/** A match of less is no reason to take a slot from a prompt that may come again. */
const minUsefulMatch = 16
/** What holds less is read again soon. */
const smallSlotChunks = 4

export class Slots {
  readonly #slots: readonly Slot[]
  readonly #chunkSize: number
  readonly #isComplete: (sequence: number) => boolean
  #uses = 0

  /** @param isComplete whether all tokens of a sequence are still held: only then its end can be cut off */
  constructor(count: number, chunkSize: number, isComplete: (sequence: number) => boolean) {
    this.#slots = Array.from({ length: count }, (_, id) => ({
      id,
      tokens: [],
      deterministicLength: 0,
      pieceEnds: [],
      promptLength: 0,
      tenant: undefined,
      usedAt: 0,
      isBusy: false,
    }))
    this.#chunkSize = chunkSize
    this.#isComplete = isComplete
  }

  /**
   * The slot with the longest match, else the least useful one.
   * @param savedTokens a match of less is not worth keeping: so much of the prompt comes from elsewhere
   */
  acquire(request: SlotRequest, savedTokens = 0): SlotMatch | undefined {
    const free = this.#slots.filter(({ isBusy }) => !isBusy)
    const [match] = free
      .map((slot) => ({ slot, keep: this.#measureMatch(slot, request) }))
      .sort((a, b) => b.keep - a.keep)
    if (!match) return undefined
    // Beside places that hold nothing, a long text is not given up for a few words.
    const hasEmptySlot = free.some(({ tokens }) => tokens.length === 0)
    const isUsefulMatch =
      match.keep >= Math.max(minUsefulMatch, hasEmptySlot ? this.#chunkSize : 0, savedTokens)
    const { slot, keep: matchLength } = isUsefulMatch ? match : { slot: this.#findLeastUseful(free), keep: 0 }
    const previousTenant = slot.tenant
    slot.isBusy = true
    slot.tenant = request.tenant
    slot.usedAt = ++this.#uses
    return { slot, matchLength, previousTenant }
  }

  get isFull(): boolean {
    return this.#slots.every(({ isBusy }) => isBusy)
  }

  /**
   * Where a prompt goes another way than the one that it has most in common with; nothing where it goes on behind that one,
   * or has nothing in common with any.
   */
  findDivergence({ prompt, tenant }: Pick<SlotRequest, 'prompt' | 'tenant'>): number | undefined {
    const shared = this.#slots
      .filter((slot) => slot.tenant === tenant && slot.promptLength > 0)
      .map(({ tokens, promptLength }) => ({
        length: commonPrefixLength(tokens, prompt, promptLength),
        promptLength,
      }))
    const [longest] = shared.sort((a, b) => b.length - a.length)
    if (
      !longest ||
      longest.length < minUsefulMatch ||
      longest.length >= longest.promptLength - volatileTailTokens
    )
      return undefined
    return longest.length < prompt.length - volatileTailTokens ? longest.length : undefined
  }

  release(slot: Slot): void {
    slot.isBusy = false
  }

  /** Nothing of it can be relied on. */
  clear(slot: Slot): void {
    slot.tokens = []
    slot.pieceEnds = []
    slot.deterministicLength = 0
  }

  /** Its end is forgotten. */
  truncate(slot: Slot, keep: number): void {
    slot.tokens.length = keep
    slot.pieceEnds = slot.pieceEnds.filter((stop) => stop <= keep)
    slot.deterministicLength = Math.min(slot.deterministicLength, this.#lastPieceEnd(slot))
  }

  /** It holds a state that was saved. */
  restore(
    slot: Slot,
    { tokens, isDeterministic, pieceEnds }: Pick<SequenceState, 'tokens' | 'isDeterministic' | 'pieceEnds'>,
  ): void {
    slot.tokens = [...tokens]
    slot.pieceEnds = [...pieceEnds]
    slot.deterministicLength = isDeterministic ? tokens.length : 0
  }

  /**
   * @param inChunks neither is what an answer says, nor a prompt that is read in smaller pieces
   * @param stops of the prompt
   */
  append(slot: Slot, tokens: readonly Token[], inChunks: boolean, stops: readonly number[] = []): void {
    const isClean = inChunks && slot.deterministicLength === slot.tokens.length
    for (const one of tokens) slot.tokens.push(one)
    if (!isClean) return
    if (stops.includes(slot.tokens.length)) slot.pieceEnds.push(slot.tokens.length)
    slot.deterministicLength = this.#lastPieceEnd(slot)
  }

  /**
   * One that holds nothing, or little and was not used for long; the model joins neighbours alone, so one beside others
   * in use, or with a low id.
   */
  #findLeastUseful(free: readonly Slot[]): Slot {
    const empty = free.filter(({ tokens }) => tokens.length === 0)
    const byUse = free.toSorted((a, b) => a.usedAt - b.usedAt)
    const small = byUse
      .slice(0, Math.ceil(free.length / 2))
      .filter(({ tokens }) => tokens.length < smallSlotChunks * this.#chunkSize)
      .sort((a, b) => a.id - b.id)
    const candidates = empty.length > 0 ? empty : small
    const isBusy = (id: number): boolean => this.#slots[id]?.isBusy ?? false
    return (
      candidates.find(({ id }) => isBusy(id - 1) || isBusy(id + 1)) ?? candidates[0] ?? (byUse[0] as Slot)
    )
  }

  #measureMatch(
    slot: Slot,
    { prompt, tenant, isDeterministic, pieceEnds, maxReuse = prompt.length - 1 }: SlotRequest,
  ): number {
    if (slot.tenant !== tenant || slot.tokens.length === 0) return 0
    const end = Math.min(
      maxReuse,
      ...(isDeterministic
        ? [slot.deterministicLength, ...differingEnds(slot.pieceEnds, pieceEnds)]
        : [slot.tokens.length]),
    )
    const length = commonPrefixLength(slot.tokens, prompt, end)
    const matchLength = isDeterministic
      ? this.#lastPieceEnd({
          tokens: { length },
          pieceEnds: slot.pieceEnds.filter((stop) => pieceEnds.includes(stop)),
        })
      : length
    return matchLength === slot.tokens.length || this.#isComplete(slot.id) ? matchLength : 0
  }

  /** Of the pieces that were read: whole chunks only, as fewer rows are added up by another kernel, or up to a stop. */
  #lastPieceEnd({
    tokens: { length },
    pieceEnds,
  }: {
    tokens: { length: number }
    pieceEnds: readonly number[]
  }): number {
    return Math.max(length - (length % this.#chunkSize), pieceEnds.findLast((stop) => stop <= length) ?? 0)
  }
}
