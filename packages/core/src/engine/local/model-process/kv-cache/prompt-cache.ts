/**
 * What was read of prompts serves the next ones: slots keep their tokens, and states are saved at breakpoints, near the ends
 * of prompts where a model cannot go back, and where another prompt takes a slot.
 */
import type { CacheLifetime } from '../../../request.ts'
import type { Decoder } from '../decoding/decoder.ts'
import type { GenerationJob } from '../runner.ts'
import { type Breakpoint, CachePlan } from './cache-plan.ts'
import { type Slot, type SlotMatch, type SlotRequest, Slots } from './slots.ts'
import { type Snapshot, type SnapshotStore, snapshotLength } from './snapshots.ts'

/** A slot for a prompt, and what there is for it already. */
export interface AcquiredSlot extends SlotMatch {
  readonly snapshot: Snapshot | undefined
  /** Behind so many tokens the prompt goes another way than the one that it has most in common with. */
  readonly divergence: number | undefined
}

/** What is lost of a slot when another prompt takes it is worth saving from so many chunks on. */
const worthSavingChunks = 4

export class PromptCache {
  readonly #decoder: Decoder
  readonly #slots: Slots
  readonly #snapshots: SnapshotStore | undefined
  readonly #onNativeWork: () => void

  /**
   * @param snapshots absent: nothing is kept but what slots hold
   * @param onNativeWork called while native code saves or loads
   */
  constructor(decoder: Decoder, snapshots: SnapshotStore | undefined, onNativeWork: () => void) {
    this.#decoder = decoder
    this.#slots = new Slots(decoder.sequenceCount, decoder.chunkSize, (id) => decoder.isComplete(id))
    this.#snapshots = snapshots
    this.#onNativeWork = onNativeWork
  }

  /** Where the pieces of a prompt end, though a chunk does not, and what is kept. None of less than a chunk. */
  breakpointsOf(job: GenerationJob): readonly Breakpoint[] {
    const { breakpoints = [] } = job
    // One that is told row by row is read in pieces of its own.
    return hasPromptLogprobs(job) ? [] : breakpoints.filter(({ length }) => length >= this.#decoder.chunkSize)
  }

  /** Nothing where all slots are in use. */
  acquire(job: GenerationJob): AcquiredSlot | undefined {
    // Asked before each step while somebody waits.
    if (this.#slots.isFull) return undefined
    const request = this.#toSlotRequest(job)
    const snapshot = hasPromptLogprobs(job) ? undefined : this.#snapshots?.findLongest(request)
    const divergence = this.#slots.findDivergence(request)
    const match = this.#slots.acquire(
      request,
      hasPromptLogprobs(job) ? Number.POSITIVE_INFINITY : snapshot?.tokens.length,
    )
    return match && { ...match, snapshot, divergence }
  }

  /** Puts what there is of a prompt into its slot. */
  async prepare(acquired: AcquiredSlot, job: GenerationJob): Promise<CachePlan> {
    const { slot, snapshot } = acquired
    // What takes the place of another state must not take that of this one.
    if (snapshot) this.#snapshots?.touch(snapshot)
    await this.#saveDisplaced(acquired)
    if (!this.#truncate(acquired)) await this.#restore(slot, snapshot)
    slot.promptLength = job.prompt.length
    const breakpoints = this.breakpointsOf(job)
    // What ended meanwhile is behind where it could be written.
    const writes = this.#cacheableBreakpoints(breakpoints).filter(
      ({ length }) => length >= slot.tokens.length,
    )
    const plan = new CachePlan(slot.tokens.length, this.#cachedPrefixLength(job), writes)
    const { cacheReadTokens } = plan.usage
    const hourLength = breakpoints.findLast(({ lifetime }) => lifetime === '1h')?.length
    if (cacheReadTokens > 0) this.#snapshots?.renew(job.tenant, job.prompt, cacheReadTokens, hourLength)
    return plan
  }

  /** These tokens of a prompt were read, or said. */
  append(slot: Slot, tokens: Parameters<Slots['append']>[1], inChunks: boolean, job: GenerationJob): void {
    this.#slots.append(slot, tokens, inChunks, inChunks ? this.#pieceEndsOf(this.breakpointsOf(job)) : [])
  }

  /** What is worth it when so much of a prompt is read. */
  async save(job: GenerationJob, slot: Slot, plan: CachePlan): Promise<void> {
    const { length } = slot.tokens
    if (!this.#snapshots || length === 0) return
    const { chunkSize, canTruncate } = this.#decoder
    const breakpoint = plan.writes.find((one) => one.length === length)
    const isSnapshotPoint = !canTruncate && length === snapshotLength(job.prompt.length, chunkSize)
    if (!breakpoint && !isSnapshotPoint) return
    await this.#saveSlot(slot, job.tenant, this.#snapshots, breakpoint?.lifetime)
    // It may not fit, or have taken the room of one before it.
    const isLost = ({ length: end }: Breakpoint): boolean =>
      end <= length && !this.#snapshots?.hasPrefix(job.tenant, job.prompt.slice(0, end))
    const lost = plan.writes.filter(isLost)
    for (const one of lost) plan.dropWrite(one)
    if (lost.length > 0) job.onCacheChange?.(plan.usage)
  }

  release(slot: Slot): void {
    this.#slots.release(slot)
  }

  /** Nothing of a slot can be relied on. */
  clear(slot: Slot): void {
    this.#slots.clear(slot)
  }

  /** Behind its first breakpoint that nobody keeps nothing is reused: its state can only be saved when it ends there. */
  #toSlotRequest(job: GenerationJob): SlotRequest {
    const { prompt, tenant, isDeterministic } = job
    const breakpoints = this.breakpointsOf(job)
    const cachedLength = this.#cachedPrefixLength(job)
    const maxReuse = this.#cacheableBreakpoints(breakpoints).find(
      ({ length }) => length > cachedLength,
    )?.length
    return { prompt, tenant, isDeterministic, pieceEnds: this.#pieceEndsOf(breakpoints), maxReuse }
  }

  #cacheableBreakpoints(breakpoints: readonly Breakpoint[]): readonly Breakpoint[] {
    return breakpoints.filter(({ length }) => this.#snapshots?.canFit(length))
  }

  /** Also of what cannot be kept, so that sums come out the same. */
  #pieceEndsOf(breakpoints: readonly Breakpoint[]): readonly number[] {
    return breakpoints.map(({ length }) => length).filter((length) => length % this.#decoder.chunkSize > 0)
  }

  /** How much of a prompt is kept for a breakpoint of an earlier call; nothing for who has none. */
  #cachedPrefixLength(job: GenerationJob): number {
    const last = this.breakpointsOf(job).at(-1)
    return last ? (this.#snapshots?.cachedPrefixLength(job.tenant, job.prompt, last.length) ?? 0) : 0
  }

  /** `false`: it holds nothing of the prompt. */
  #truncate({ slot, matchLength }: SlotMatch): boolean {
    if (matchLength === 0 || !this.#decoder.truncate(slot.id, matchLength)) return false
    this.#slots.truncate(slot, matchLength)
    return true
  }

  /** With what was saved, or nothing. */
  async #restore(slot: Slot, snapshot: Snapshot | undefined): Promise<void> {
    this.#slots.clear(slot)
    this.#decoder.truncate(slot.id, 0)
    if (!snapshot) return
    const loading = this.#snapshots?.load(snapshot, (file) => this.#decoder.load(slot.id, file))
    this.#onNativeWork()
    if (await loading) this.#slots.restore(slot, snapshot)
    else this.#decoder.truncate(slot.id, 0)
  }

  /** What another prompt is about to take the place of, where much would have to be read again. */
  async #saveDisplaced({ slot, matchLength, previousTenant }: SlotMatch): Promise<void> {
    const { chunkSize, canTruncate } = this.#decoder
    // Others have saved it when it was read.
    if (!this.#snapshots || previousTenant === undefined || !canTruncate) return
    const length = Math.min(snapshotLength(slot.promptLength, chunkSize), slot.tokens.length)
    const isWorthSaving = (kept: number): boolean => length - kept >= worthSavingChunks * chunkSize
    if (!isWorthSaving(matchLength)) return
    // Also behind that: up to a breakpoint near the end.
    const snapshot = this.#snapshots.findLongest({
      prompt: slot.tokens,
      tenant: previousTenant,
      isDeterministic: false,
      pieceEnds: [],
    })
    if (!isWorthSaving(snapshot?.tokens.length ?? 0) || !this.#decoder.truncate(slot.id, length)) return
    this.#slots.truncate(slot, length)
    await this.#saveSlot(slot, previousTenant, this.#snapshots)
  }

  async #saveSlot(
    slot: Slot,
    tenant: string,
    snapshots: SnapshotStore,
    lifetime?: CacheLifetime,
  ): Promise<void> {
    const { length } = slot.tokens
    const tokens = [...slot.tokens]
    const isDeterministic = slot.deterministicLength === length && this.#decoder.isRestoreExact(length)
    const state = { tenant, tokens, isDeterministic, pieceEnds: [...slot.pieceEnds], lifetime }
    const saving = snapshots.save(state, (file) => this.#decoder.save(slot.id, tokens, file))
    this.#onNativeWork()
    await saving
  }
}

/** How likely the tokens of its prompt were. What was read before does not say that any more. */
export const hasPromptLogprobs = ({ onPromptLogprobs }: GenerationJob): boolean =>
  onPromptLogprobs !== undefined
