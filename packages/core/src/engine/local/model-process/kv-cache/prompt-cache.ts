/**
 * What was read of prompts serves the next ones: slots keep their tokens, and states are saved at breakpoints, near the ends
 * of prompts where a model cannot go back, and where another prompt takes a slot.
 */
import type { CacheLifetime } from '../../../request.ts'
import type { Decoder } from '../decoding/decoder.ts'
import type { Job } from '../runner.ts'
import { type Breakpoint, CachePlan } from './cache-plan.ts'
import { type Place, type Slot, Slots, type Wish } from './slots.ts'
import { type Snapshot, type Snapshots, snapshotLength } from './snapshots.ts'

/** A slot for a prompt, and what there is for it already. */
export interface Taken extends Place {
  readonly saved: Snapshot | undefined
  /** Behind so many tokens the prompt goes another way than the one that it has most in common with. */
  readonly divergence: number | undefined
}

/** What is lost of a slot when another prompt takes it is worth saving from so many chunks on. */
const worthSavingChunks = 4

export class PromptCache {
  readonly #decoder: Decoder
  readonly #slots: Slots
  readonly #snapshots: Snapshots | undefined
  readonly #beside: () => void

  /**
   * @param snapshots absent: nothing is kept but what slots hold
   * @param beside called while native code saves or loads
   */
  constructor(decoder: Decoder, snapshots: Snapshots | undefined, beside: () => void) {
    this.#decoder = decoder
    this.#slots = new Slots(decoder.sequences, decoder.chunkSize, (id) => decoder.isWhole(id))
    this.#snapshots = snapshots
    this.#beside = beside
  }

  /** Where the pieces of a prompt end, though a chunk does not, and what is kept. None of less than a chunk. */
  breakpointsOf(job: Job): readonly Breakpoint[] {
    const { breakpoints = [] } = job
    // One that is told row by row is read in pieces of its own.
    return isTold(job) ? [] : breakpoints.filter(({ length }) => length >= this.#decoder.chunkSize)
  }

  /** Nothing where all slots are in use. */
  take(job: Job): Taken | undefined {
    // Asked before each step while somebody waits.
    if (this.#slots.isFull) return undefined
    const wish = this.#wishOf(job)
    const saved = isTold(job) ? undefined : this.#snapshots?.find(wish)
    const divergence = this.#slots.divergence(wish)
    const place = this.#slots.take(wish, isTold(job) ? Number.POSITIVE_INFINITY : saved?.tokens.length)
    return place && { ...place, saved, divergence }
  }

  /** Puts what there is of a prompt into its slot. */
  async prepare(taken: Taken, job: Job): Promise<CachePlan> {
    const { slot, saved } = taken
    // What takes the place of another state must not take that of this one.
    if (saved) this.#snapshots?.use(saved)
    await this.#keep(taken)
    if (!this.#cut(taken)) await this.#fill(slot, saved)
    slot.promptLength = job.prompt.length
    const breakpoints = this.breakpointsOf(job)
    // What ended meanwhile is behind where it could be written.
    const writes = this.#writable(breakpoints).filter(({ length }) => length >= slot.tokens.length)
    const plan = new CachePlan(slot.tokens.length, this.#leased(job), writes)
    const { cacheReadTokens } = plan.cached
    const hour = breakpoints.findLast(({ lifetime }) => lifetime === '1h')?.length
    if (cacheReadTokens > 0) this.#snapshots?.renew(job.tenant, job.prompt, cacheReadTokens, hour)
    return plan
  }

  /** These tokens of a prompt were read, or said. */
  append(slot: Slot, tokens: Parameters<Slots['append']>[1], inChunks: boolean, job: Job): void {
    this.#slots.append(slot, tokens, inChunks, inChunks ? this.#stopsOf(this.breakpointsOf(job)) : [])
  }

  /** What is worth it when so much of a prompt is read. */
  async save(job: Job, slot: Slot, plan: CachePlan): Promise<void> {
    const { length } = slot.tokens
    if (!this.#snapshots || length === 0) return
    const { chunkSize, cutsBack } = this.#decoder
    const breakpoint = plan.writes.find((one) => one.length === length)
    const isEnd = !cutsBack && length === snapshotLength(job.prompt.length, chunkSize)
    if (!breakpoint && !isEnd) return
    await this.#saveSlot(slot, job.tenant, this.#snapshots, breakpoint?.lifetime)
    // It may not fit, or have taken the room of one before it.
    const isLost = ({ length: end }: Breakpoint): boolean =>
      end <= length && !this.#snapshots?.keeps(job.tenant, job.prompt.slice(0, end))
    const lost = plan.writes.filter(isLost)
    for (const one of lost) plan.without(one)
    if (lost.length > 0) job.onCached?.(plan.cached)
  }

  release(slot: Slot): void {
    this.#slots.release(slot)
  }

  /** Nothing of a slot can be relied on. */
  empty(slot: Slot): void {
    this.#slots.empty(slot)
  }

  /** Behind its first breakpoint that nobody keeps nothing is reused: its state can only be saved when it ends there. */
  #wishOf(job: Job): Wish {
    const { prompt, tenant, repeatable } = job
    const breakpoints = this.breakpointsOf(job)
    const leased = this.#leased(job)
    const most = this.#writable(breakpoints).find(({ length }) => length > leased)?.length
    return { prompt, tenant, repeatable, stops: this.#stopsOf(breakpoints), most }
  }

  #writable(breakpoints: readonly Breakpoint[]): readonly Breakpoint[] {
    return breakpoints.filter(({ length }) => this.#snapshots?.fits(length))
  }

  /** Also of what cannot be kept, so that sums come out the same. */
  #stopsOf(breakpoints: readonly Breakpoint[]): readonly number[] {
    return breakpoints.map(({ length }) => length).filter((length) => length % this.#decoder.chunkSize > 0)
  }

  /** How much of a prompt is kept for a breakpoint of an earlier call; nothing for who has none. */
  #leased(job: Job): number {
    const last = this.breakpointsOf(job).at(-1)
    return last ? (this.#snapshots?.leased(job.tenant, job.prompt, last.length) ?? 0) : 0
  }

  /** `false`: it holds nothing of the prompt. */
  #cut({ slot, keep }: Place): boolean {
    if (keep === 0 || !this.#decoder.forget(slot.id, keep)) return false
    this.#slots.cut(slot, keep)
    return true
  }

  /** With what was saved, or nothing. */
  async #fill(slot: Slot, saved: Snapshot | undefined): Promise<void> {
    this.#slots.empty(slot)
    this.#decoder.forget(slot.id, 0)
    if (!saved) return
    const loading = this.#snapshots?.load(saved, (file) => this.#decoder.load(slot.id, file))
    this.#beside()
    if (await loading) this.#slots.restore(slot, saved)
    else this.#decoder.forget(slot.id, 0)
  }

  /** What another prompt is about to take the place of, where much would have to be read again. */
  async #keep({ slot, keep, before }: Place): Promise<void> {
    const { chunkSize, cutsBack } = this.#decoder
    // Others have saved it when it was read.
    if (!this.#snapshots || before === undefined || !cutsBack) return
    const length = Math.min(snapshotLength(slot.promptLength, chunkSize), slot.tokens.length)
    const isMuch = (kept: number): boolean => length - kept >= worthSavingChunks * chunkSize
    if (!isMuch(keep)) return
    // Also behind that: up to a breakpoint near the end.
    const saved = this.#snapshots.find({ prompt: slot.tokens, tenant: before, repeatable: false, stops: [] })
    if (!isMuch(saved?.tokens.length ?? 0) || !this.#decoder.forget(slot.id, length)) return
    this.#slots.cut(slot, length)
    await this.#saveSlot(slot, before, this.#snapshots)
  }

  async #saveSlot(slot: Slot, tenant: string, snapshots: Snapshots, lifetime?: CacheLifetime): Promise<void> {
    const { length } = slot.tokens
    const tokens = [...slot.tokens]
    const clean = slot.clean === length && this.#decoder.loadsAlike(length)
    const state = { tenant, tokens, clean, stops: [...slot.stops], lifetime }
    const saving = snapshots.save(state, (file) => this.#decoder.save(slot.id, tokens, file))
    this.#beside()
    await saving
  }
}

/** How likely the tokens of its prompt were. What was read before does not say that any more. */
export const isTold = ({ onPrompt }: Job): boolean => onPrompt !== undefined
