/** Slots keep the tokens of their last prompt, so that a prompt with the same prefix reuses their state. */
import type { Token } from 'node-llama-cpp'
import type { SequenceState } from './sequence-state.ts'

export interface Slot {
  /** Sequence id. */
  readonly id: number
  /** Tokens in the KV cache, in order. */
  tokens: Token[]
  /** Length that was evaluated from the start in whole chunks, or up to piece ends: that state is reproducible. */
  deterministicLength: number
  /** Lengths at which evaluation stopped inside a chunk. */
  pieceEnds: number[]
  /** Length of the last prompt. */
  promptLength: number
  /** Owner of the tokens. */
  tenant: string | undefined
  /** Time of last use, counted in uses of all slots. */
  usedAt: number
  isBusy: boolean
}

export interface SlotMatch {
  readonly slot: Slot
  /** Number of prompt tokens that are reused. At least one token is always evaluated. */
  readonly matchLength: number
  /** Owner of the slot's previous tokens. */
  readonly previousTenant: string | undefined
}

export interface SlotRequest {
  readonly prompt: readonly Token[]
  /** Tokens are never shared between tenants: the time to the first token would reveal the prompts of others. */
  readonly tenant: string
  /** Whether the output has to be the same as from an empty slot. */
  readonly isDeterministic: boolean
  /** Lengths at which evaluation stops inside a chunk. */
  readonly pieceEnds: readonly number[]
  /** Maximum number of reused tokens. @default all but the last */
  readonly maxReuse?: number | undefined
}

/** Whether the first `length` tokens are evaluated in the same pieces with either piece ends. */
export const hasSamePieces = (some: readonly number[], others: readonly number[], length: number): boolean =>
  differingEnds(some, others).every((stop) => stop > length)

const differingEnds = (some: readonly number[], others: readonly number[]): readonly number[] =>
  [...some, ...others].filter((stop) => !(some.includes(stop) && others.includes(stop)))

/** Length of the common prefix, in tokens. */
export function commonPrefixLength(
  some: readonly Token[],
  others: readonly Token[],
  limit = some.length,
): number {
  let length = 0
  while (length < limit && length < some.length && some[length] === others[length]) length++
  return length
}

/** Tokens at the end of a prompt that the next turn may lack, such as a template's `<think>`. */
export const volatileTailTokens = 8

/** A shorter match is no reason to take a slot from a prompt that may come again. */
const minUsefulMatch = 16
/** Slots with fewer chunks are cheap to evaluate again. */
const smallSlotChunks = 4

export class Slots {
  readonly #slots: readonly Slot[]
  readonly #chunkSize: number
  readonly #isComplete: (sequence: number) => boolean
  #uses = 0

  /** @param isComplete whether the KV cache has all tokens of a sequence: only then it can be truncated */
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
   * Takes the free slot with the longest match, else the least useful one.
   * @param savedTokens length of the best snapshot: a shorter match is not used
   */
  acquire(request: SlotRequest, savedTokens = 0): SlotMatch | undefined {
    const free = this.#slots.filter(({ isBusy }) => !isBusy)
    const [match] = free
      .map((slot) => ({ slot, keep: this.#measureMatch(slot, request) }))
      .sort((a, b) => b.keep - a.keep)
    if (!match) return undefined
    // While a slot is empty, a long text is not given up for a short match.
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
   * Length that the prompt shares with the closest prompt of the tenant, where both continue differently. Returns
   * `undefined` where the prompt continues that one, or shares nothing.
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

  clear(slot: Slot): void {
    slot.tokens = []
    slot.pieceEnds = []
    slot.deterministicLength = 0
  }

  truncate(slot: Slot, keep: number): void {
    slot.tokens.length = keep
    slot.pieceEnds = slot.pieceEnds.filter((stop) => stop <= keep)
    slot.deterministicLength = Math.min(slot.deterministicLength, this.#lastPieceEnd(slot))
  }

  /** Records that a snapshot was restored into the slot. */
  restore(
    slot: Slot,
    { tokens, isDeterministic, pieceEnds }: Pick<SequenceState, 'tokens' | 'isDeterministic' | 'pieceEnds'>,
  ): void {
    slot.tokens = [...tokens]
    slot.pieceEnds = [...pieceEnds]
    slot.deterministicLength = isDeterministic ? tokens.length : 0
  }

  /**
   * @param inChunks `false` for output, and for a prompt that is evaluated in smaller pieces
   * @param stops piece ends of the prompt
   */
  append(slot: Slot, tokens: readonly Token[], inChunks: boolean, stops: readonly number[] = []): void {
    const isClean = inChunks && slot.deterministicLength === slot.tokens.length
    for (const one of tokens) slot.tokens.push(one)
    if (!isClean) return
    if (stops.includes(slot.tokens.length)) slot.pieceEnds.push(slot.tokens.length)
    slot.deterministicLength = this.#lastPieceEnd(slot)
  }

  /**
   * An empty slot, or one that has few tokens and was not used for long. Prefers neighbours of busy slots and low ids,
   * since llama.cpp batches neighbours only.
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

  /** End of the last whole chunk or piece. Fewer rows than a chunk use other kernels, with other sums. */
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
