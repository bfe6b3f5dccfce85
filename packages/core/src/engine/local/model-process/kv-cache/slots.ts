/** Slots keep the tokens of their last prompt, so that a prompt with the same prefix reuses their state. */
import type { Token } from 'node-llama-cpp'
import type { SequenceState } from './sequence-state.ts'

export interface Slot {
  /** Sequence id. */
  readonly id: number
  /** Tokens in the KV cache, in order. */
  tokens: Token[]
  /**
   * Number of leading tokens with reproducible state: they were evaluated in whole chunks, or up to piece
   * ends.
   */
  deterministicLength: number
  /** Lengths in tokens at which evaluation stopped inside a chunk, at a breakpoint. */
  pieceEnds: number[]
  /** Length of the last prompt, in tokens. */
  promptLength: number
  /** Tenant that the tokens belong to. */
  tenant: string | undefined
  /** Last use of the slot, as a counter over the uses of all slots. */
  usedAt: number
  isBusy: boolean
  /** Whether the state was copied from another slot, and the memory will be copied at the next step. */
  isCopyPending: boolean
  /** Whether its memory will be copied to another slot at the next step. Until then, no other state may be loaded. */
  isCopySource: boolean
}

export interface SlotMatch {
  readonly slot: Slot
  /** Number of prompt tokens that are reused. At least one token is always evaluated. */
  readonly matchLength: number
  /** Tenant that the previous tokens of the slot belong to. */
  readonly previousTenant: string | undefined
  /** A slot in use whose first `length` tokens are copied. Then no tokens of the own slot are reused. */
  readonly copy: { readonly source: Slot; readonly length: number } | undefined
}

export interface SlotRequest {
  readonly prompt: readonly Token[]
  /**
   * Tokens are never shared between tenants: the time to the first token would reveal the prompts of others.
   */
  readonly tenant: string
  /** Whether the output has to be the same as from an empty slot. */
  readonly isDeterministic: boolean
  /** Lengths in tokens at which evaluation will stop inside a chunk, at a breakpoint. */
  readonly pieceEnds: readonly number[]
  /** Maximum number of reused tokens. @default all but the last */
  readonly maxReuse?: number | undefined
  /** Minimum number of tokens that a copy of another slot must save. @default no copies */
  readonly minCopyLength?: number
}

/** Whether both lists of piece ends divide the first `length` tokens into the same pieces. */
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

/**
 * How many tokens at the end of a prompt may be absent from the prompt of the next turn, such as a template's
 * `<think>`.
 */
export const volatileTailTokens = 8

/**
 * Minimum useful match, in tokens. A slot with a shorter match is left to its prompt, which may come again.
 */
const minUsefulMatch = 16
/** A prompt of fewer chunks than this is cheap to evaluate again, so another prompt may take its slot. */
const smallSlotChunks = 4

export class Slots {
  readonly #slots: readonly Slot[]
  readonly #chunkSize: number
  readonly #isComplete: (sequence: number) => boolean
  #uses = 0

  /** @param isComplete whether the KV cache has all tokens of a sequence, which truncation requires */
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
      isCopyPending: false,
      isCopySource: false,
    }))
    this.#chunkSize = chunkSize
    this.#isComplete = isComplete
  }

  /**
   * Takes the free slot with the longest match. If no match is long enough, takes the least useful free slot. If a slot
   * in use has a much longer match, that one is copied.
   * @param savedTokens length of the longest usable snapshot, in tokens. Shorter matches are not used.
   */
  acquire(request: SlotRequest, savedTokens = 0): SlotMatch | undefined {
    const free = this.#slots.filter(
      ({ isBusy, isCopyPending, isCopySource }) => !isBusy && !isCopyPending && !isCopySource,
    )
    const match = this.#findLongestMatch(free, request)
    if (!match) return undefined
    // If another slot is empty, a match shorter than a chunk does not displace a prompt.
    const hasEmptySlot = free.some(({ tokens }) => tokens.length === 0)
    const isUsefulMatch =
      match.keep >= Math.max(minUsefulMatch, hasEmptySlot ? this.#chunkSize : 0, savedTokens)
    const copy = this.#findSource(request, Math.max(isUsefulMatch ? match.keep : 0, savedTokens))
    const isOwnMatch = isUsefulMatch && !copy
    const { slot, keep: matchLength } = isOwnMatch ? match : { slot: this.#findLeastUseful(free), keep: 0 }
    const previousTenant = slot.tenant
    slot.isBusy = true
    slot.tenant = request.tenant
    slot.usedAt = ++this.#uses
    return { slot, matchLength, previousTenant, copy }
  }

  /** Finds the slot in use with the longest match, unless a copy of it would save too few tokens. */
  #findSource(request: SlotRequest, otherwiseReused: number): SlotMatch['copy'] {
    const { minCopyLength = Number.POSITIVE_INFINITY } = request
    const used = this.#slots.filter(({ isBusy, isCopyPending }) => isBusy && !isCopyPending)
    const match = this.#findLongestMatch(used, request)
    if (!match || !(match.keep - otherwiseReused >= minCopyLength)) return undefined
    return { source: match.slot, length: match.keep }
  }

  #findLongestMatch(
    slots: readonly Slot[],
    request: SlotRequest,
  ): { readonly slot: Slot; readonly keep: number } | undefined {
    const matches = slots.map((slot) => ({ slot, keep: this.#measureMatch(slot, request) }))
    return matches.sort((a, b) => b.keep - a.keep)[0]
  }

  get isFull(): boolean {
    return this.#slots.every(({ isBusy }) => isBusy)
  }

  /**
   * Number of tokens after which the prompt diverges from the most similar prompt of the tenant. Returns
   * `undefined` if one of the two prompts extends the other, or if they share too few tokens.
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

  /** Free slots that contain tokens of the tenant. */
  freeSlotsOf(tenant: string): readonly Slot[] {
    return this.#slots.filter((slot) => !slot.isBusy && slot.tenant === tenant && slot.tokens.length > 0)
  }

  release(slot: Slot): void {
    slot.isBusy = false
    if (slot.isCopyPending) this.clear(slot)
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

  /** Records that a saved state was restored into the slot. */
  restore(
    slot: Slot,
    {
      tokens,
      pieceEnds,
      deterministicLength,
    }: Pick<SequenceState, 'tokens' | 'pieceEnds'> & Pick<Slot, 'deterministicLength'>,
  ): void {
    slot.tokens = [...tokens]
    slot.pieceEnds = [...pieceEnds]
    slot.deterministicLength = deterministicLength
  }

  /** Records that another slot has the state of `source`, whose memory is copied at the next step. */
  startCopy(source: Slot, slot: Slot): void {
    this.restore(slot, source)
    slot.isCopyPending = true
    source.isCopySource = true
  }

  /** Records that a step has run, so that no copy is pending. A failed step has copied the memory, too. */
  endStep(): void {
    for (const slot of this.#slots) {
      slot.isCopyPending = false
      slot.isCopySource = false
    }
  }

  /**
   * @param inChunks `false` for output, for smaller pieces, and for a step with other sequences
   * @param stops piece ends of the prompt
   */
  append(slot: Slot, tokens: readonly Token[], inChunks: boolean, stops: readonly number[] = []): void {
    this.endStep()
    const isClean = inChunks && slot.deterministicLength === slot.tokens.length
    for (const one of tokens) slot.tokens.push(one)
    if (!isClean) return
    if (stops.includes(slot.tokens.length)) slot.pieceEnds.push(slot.tokens.length)
    slot.deterministicLength = this.#lastPieceEnd(slot)
  }

  /**
   * Finds an empty slot. If there is none, finds a slot with few tokens in the less recently used half of the
   * slots, else the least recently used slot. Prefers neighbours of busy slots and low ids, since llama.cpp
   * batches neighbours only.
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

  /**
   * End of the last whole chunk or piece. Other kernels evaluated the tokens after it, and may sum in another
   * order.
   */
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
