/** Sequences keep their tokens: what a prompt has in common with the last one need not be read again. */
import type { Token } from 'node-llama-cpp'
import type { State } from './snapshots.ts'

export interface Slot {
  /** Of the sequence. */
  readonly id: number
  /** What its state was made from, in order. */
  tokens: Token[]
  /** How many of them were read in whole chunks from the start, or up to stops: that state is the same each time. */
  clean: number
  /** Where its prompt was read up to, though a chunk does not end there. */
  stops: number[]
  /** How long the prompt was that was read last. */
  promptLength: number
  /** Whose they are. */
  tenant: string | undefined
  /** Counts up with every use. */
  usedAt: number
  busy: boolean
}

export interface Place {
  readonly slot: Slot
  /** So many of the prompt's tokens need not be read again; at least one always is. */
  readonly keep: number
  /** Whose the slot was before. */
  readonly before: string | undefined
}

export interface Wish {
  readonly prompt: readonly Token[]
  /** Tokens are never shared between tenants: how long an answer takes would tell what others asked. */
  readonly tenant: string
  /** The answer has to be the same as from an empty slot. */
  readonly repeatable: boolean
  /** What is read ends there, too, though a chunk does not. */
  readonly stops: readonly number[]
  /** Not more than so many tokens are to be reused. @default all but the last */
  readonly most?: number | undefined
}

/** Whether so many tokens are read in the same pieces with these stops as with others. */
export const isReadAlike = (some: readonly number[], others: readonly number[], length: number): boolean =>
  differences(some, others).every((stop) => stop > length)

const differences = (some: readonly number[], others: readonly number[]): readonly number[] =>
  [...some, ...others].filter((stop) => !(some.includes(stop) && others.includes(stop)))

/** How many tokens two texts begin with alike. */
export function common(some: readonly Token[], others: readonly Token[], most = some.length): number {
  let length = 0
  while (length < most && length < some.length && some[length] === others[length]) length++
  return length
}

/** So much of a prompt's end belongs to one answer alone: a template's `<think>`, say, which history leaves out. */
export const turnTokens = 8

/** A match of less is no reason to take a slot from a prompt that may come again. */
const worthKeeping = 16
/** What holds less is read again soon. */
const littleChunks = 4

export class Slots {
  readonly #slots: readonly Slot[]
  readonly #chunkSize: number
  readonly #isWhole: (sequence: number) => boolean
  #uses = 0

  /** @param isWhole whether all tokens of a sequence are still held: only then its end can be cut off */
  constructor(count: number, chunkSize: number, isWhole: (sequence: number) => boolean) {
    this.#slots = Array.from({ length: count }, (_, id) => ({
      id,
      tokens: [],
      clean: 0,
      stops: [],
      promptLength: 0,
      tenant: undefined,
      usedAt: 0,
      busy: false,
    }))
    this.#chunkSize = chunkSize
    this.#isWhole = isWhole
  }

  /**
   * The slot with the longest match, else the least useful one.
   * @param saved a match of less is not worth keeping: so much of the prompt comes from elsewhere
   */
  take(wish: Wish, saved = 0): Place | undefined {
    const free = this.#slots.filter(({ busy }) => !busy)
    const [match] = free
      .map((slot) => ({ slot, keep: this.#match(slot, wish) }))
      .sort((a, b) => b.keep - a.keep)
    if (!match) return undefined
    // Beside places that hold nothing, a long text is not given up for a few words.
    const isFree = free.some(({ tokens }) => tokens.length === 0)
    const isWorthIt = match.keep >= Math.max(worthKeeping, isFree ? this.#chunkSize : 0, saved)
    const { slot, keep } = isWorthIt ? match : { slot: this.#leastUseful(free), keep: 0 }
    const before = slot.tenant
    slot.busy = true
    slot.tenant = wish.tenant
    slot.usedAt = ++this.#uses
    return { slot, keep, before }
  }

  get isFull(): boolean {
    return this.#slots.every(({ busy }) => busy)
  }

  /**
   * Where a prompt goes another way than the one that it has most in common with; nothing where it goes on behind that one,
   * or has nothing in common with any.
   */
  divergence({ prompt, tenant }: Pick<Wish, 'prompt' | 'tenant'>): number | undefined {
    const shared = this.#slots
      .filter((slot) => slot.tenant === tenant && slot.promptLength > 0)
      .map(({ tokens, promptLength }) => ({ length: common(tokens, prompt, promptLength), promptLength }))
    const [most] = shared.sort((a, b) => b.length - a.length)
    if (!most || most.length < worthKeeping || most.length >= most.promptLength - turnTokens) return undefined
    return most.length < prompt.length - turnTokens ? most.length : undefined
  }

  release(slot: Slot): void {
    slot.busy = false
  }

  /** Nothing of it can be relied on. */
  empty(slot: Slot): void {
    slot.tokens = []
    slot.stops = []
    slot.clean = 0
  }

  /** Its end is forgotten. */
  cut(slot: Slot, keep: number): void {
    slot.tokens.length = keep
    slot.stops = slot.stops.filter((stop) => stop <= keep)
    slot.clean = Math.min(slot.clean, this.#lastEnd(slot))
  }

  /** It holds a state that was saved. */
  restore(slot: Slot, { tokens, clean, stops }: Pick<State, 'tokens' | 'clean' | 'stops'>): void {
    slot.tokens = [...tokens]
    slot.stops = [...stops]
    slot.clean = clean ? tokens.length : 0
  }

  /**
   * @param inChunks neither is what an answer says, nor a prompt that is read in smaller pieces
   * @param stops of the prompt
   */
  append(slot: Slot, tokens: readonly Token[], inChunks: boolean, stops: readonly number[] = []): void {
    const isClean = inChunks && slot.clean === slot.tokens.length
    for (const one of tokens) slot.tokens.push(one)
    if (!isClean) return
    if (stops.includes(slot.tokens.length)) slot.stops.push(slot.tokens.length)
    slot.clean = this.#lastEnd(slot)
  }

  /**
   * One that holds nothing, or little and was not used for long; the model joins neighbours alone, so one beside others
   * in use, or with a low id.
   */
  #leastUseful(free: readonly Slot[]): Slot {
    const empty = free.filter(({ tokens }) => tokens.length === 0)
    const byUse = free.toSorted((a, b) => a.usedAt - b.usedAt)
    const little = byUse
      .slice(0, Math.ceil(free.length / 2))
      .filter(({ tokens }) => tokens.length < littleChunks * this.#chunkSize)
      .sort((a, b) => a.id - b.id)
    const good = empty.length > 0 ? empty : little
    const isBusy = (id: number): boolean => this.#slots[id]?.busy ?? false
    return good.find(({ id }) => isBusy(id - 1) || isBusy(id + 1)) ?? good[0] ?? (byUse[0] as Slot)
  }

  #match(slot: Slot, { prompt, tenant, repeatable, stops, most = prompt.length - 1 }: Wish): number {
    if (slot.tenant !== tenant || slot.tokens.length === 0) return 0
    const end = Math.min(
      most,
      ...(repeatable ? [slot.clean, ...differences(slot.stops, stops)] : [slot.tokens.length]),
    )
    const length = common(slot.tokens, prompt, end)
    const keep = repeatable
      ? this.#lastEnd({ tokens: { length }, stops: slot.stops.filter((stop) => stops.includes(stop)) })
      : length
    return keep === slot.tokens.length || this.#isWhole(slot.id) ? keep : 0
  }

  /** Of the pieces that were read: whole chunks only, as fewer rows are added up by another kernel, or up to a stop. */
  #lastEnd({ tokens: { length }, stops }: { tokens: { length: number }; stops: readonly number[] }): number {
    return Math.max(length - (length % this.#chunkSize), stops.findLast((stop) => stop <= length) ?? 0)
  }
}
