/**
 * Reuses the KV state of earlier prompts. Each slot keeps the state of its last prompt. Snapshots, which are
 * states in files, are saved at breakpoints. If the model can truncate sequences, a snapshot is also saved
 * before another prompt takes a slot. Otherwise, a snapshot is also saved near the end of each prompt. A
 * sequence that gives up its slot is suspended: its state is in a file until it gets a slot again.
 */
import type { CacheLifetime } from '../../../request.ts'
import type { Decoder } from '../decoding/decoder.ts'
import { type CacheablePrompt, type GenerationJob, nothingCached, type RunnerActivity } from '../runner.ts'
import { type Breakpoint, CachePlan } from './cache-plan.ts'
import { type Slot, type SlotMatch, type SlotRequest, Slots } from './slots.ts'
import { type Snapshot, type SnapshotStore, snapshotLength } from './snapshots.ts'
import type { StateFile } from './state-files.ts'

/** A slot for a prompt, and the cached state that the prompt can reuse. */
export interface AcquiredSlot extends SlotMatch {
  readonly snapshot: Snapshot | undefined
  /** Number of tokens after which the prompt diverges from the most similar prompt in a slot. */
  readonly divergence: number | undefined
}

/** State of a suspended sequence: all tokens of its slot, in a file. */
export interface SuspendedState
  extends StateFile,
    Readonly<Pick<Slot, 'tokens' | 'pieceEnds' | 'deterministicLength'>> {}

/**
 * A state that a new prompt displaces from its slot is saved if at least this many chunks of it would be
 * lost.
 */
const worthSavingChunks = 4

export class PromptCache {
  readonly #decoder: Decoder
  readonly #slots: Slots
  readonly #snapshots: SnapshotStore | undefined
  readonly #onNativeWork: () => void
  #transferredAt = 0
  #transferMs = 0

  /**
   * @param snapshots if absent, prompts are cached in slots only
   * @param onNativeWork called while native code saves or loads a state
   */
  constructor(decoder: Decoder, snapshots: SnapshotStore | undefined, onNativeWork: () => void) {
    this.#decoder = decoder
    this.#slots = new Slots(decoder.sequenceCount, decoder.chunkSize, (id) => decoder.isComplete(id))
    this.#snapshots = snapshots
    this.#onNativeWork = onNativeWork
  }

  /** Time at which a state was last saved or loaded, in ms. Nothing is decoded meanwhile. */
  get transferredAt(): number {
    return this.#transferredAt
  }

  /** Duration of that transfer, in ms. */
  get transferMs(): number {
    return this.#transferMs
  }

  /** Number and size of the saved states, and of those that were dropped. */
  get savedStates(): Pick<RunnerActivity, 'cachedStates' | 'cachedStateBytes' | 'evicted'> {
    const { count = 0, sizeBytes = 0, evicted = nothingCached.evicted } = this.#snapshots ?? {}
    return { cachedStates: count, cachedStateBytes: sizeBytes, evicted }
  }

  /** Breakpoints of the job, without breakpoints in the first chunk. */
  breakpointsOf(job: CacheablePrompt): readonly Breakpoint[] {
    const { breakpoints = [] } = job
    // A prompt with logprobs is divided into other pieces, so its breakpoints are ignored.
    return hasPromptLogprobs(job) ? [] : breakpoints.filter(({ length }) => length >= this.#decoder.chunkSize)
  }

  /**
   * Number of tokens that are cached for a breakpoint of an earlier call. 0 for a job without breakpoints.
   */
  cachedPrefixLength(job: CacheablePrompt): number {
    const last = this.breakpointsOf(job).at(-1)
    return last ? (this.#snapshots?.cachedPrefixLength(job.tenant, job.prompt, last.length) ?? 0) : 0
  }

  /** Returns `undefined` if all slots are in use. */
  acquire(job: GenerationJob): AcquiredSlot | undefined {
    // A cheap check, since the scheduler tries again before each step while a job is queued.
    if (this.#slots.isFull) return undefined
    const request = this.#toSlotRequest(job)
    const snapshot = hasPromptLogprobs(job) ? undefined : this.#snapshots?.findLongest(request)
    const divergence = this.#slots.findDivergence(request)
    const match = this.#slots.acquire(
      request,
      hasPromptLogprobs(job) ? Number.POSITIVE_INFINITY : snapshot?.tokens.length,
    )
    return match && { ...match, snapshot: match.copy ? undefined : snapshot, divergence }
  }

  /**
   * Prepares the slot for the prompt: truncates its state to the matching prefix, copies that of another slot, or loads a
   * snapshot.
   */
  async prepare(acquired: AcquiredSlot, job: GenerationJob): Promise<CachePlan> {
    const { slot, snapshot } = acquired
    // Saving the displaced state must not evict this snapshot.
    if (snapshot) this.#snapshots?.touch(snapshot)
    await this.#saveDisplaced(acquired)
    if (!this.#truncate(acquired) && !(await this.#copy(acquired))) await this.#restore(slot, snapshot)
    slot.promptLength = job.prompt.length
    const breakpoints = this.breakpointsOf(job)
    // Breakpoints inside the reused prefix cannot be saved any more.
    const writes = this.#cacheableBreakpoints(breakpoints).filter(
      ({ length }) => length >= slot.tokens.length,
    )
    const plan = new CachePlan(slot.tokens.length, this.cachedPrefixLength(job), writes)
    const { cacheReadTokens } = plan.usage
    const hourLength = breakpoints.findLast(({ lifetime }) => lifetime === '1h')?.length
    if (cacheReadTokens > 0) this.#snapshots?.renew(job.tenant, job.prompt, cacheReadTokens, hourLength)
    return plan
  }

  /** Call it after a failed step. */
  endStep(): void {
    this.#slots.endStep()
  }

  /** Records evaluated tokens of the prompt or the output. */
  append(slot: Slot, tokens: Parameters<Slots['append']>[1], inChunks: boolean, job: GenerationJob): void {
    this.#slots.append(slot, tokens, inChunks, inChunks ? this.#pieceEndsOf(this.breakpointsOf(job)) : [])
  }

  /**
   * Whether evaluation has reached a position at which a snapshot is saved: a breakpoint, or for models that
   * cannot truncate, a position near the end of the prompt.
   */
  isSavePoint(job: GenerationJob, { tokens: { length } }: Slot, plan: CachePlan): boolean {
    if (!this.#snapshots || length === 0) return false
    const { chunkSize, canTruncate } = this.#decoder
    return (
      plan.writes.some((one) => one.length === length) ||
      (!canTruncate && length === snapshotLength(job.prompt.length, chunkSize))
    )
  }

  /** Saves a snapshot at a save point. */
  async save(job: GenerationJob, slot: Slot, plan: CachePlan): Promise<void> {
    if (!this.#snapshots) return
    const { length } = slot.tokens
    const lifetime = plan.writes.find((one) => one.length === length)?.lifetime
    await this.#saveSlot(slot, job.tenant, this.#snapshots, lifetime)
    // The new snapshot may not fit, or may have evicted the snapshot of an earlier breakpoint.
    const isLost = ({ length: end }: Breakpoint): boolean =>
      end <= length && !this.#snapshots?.hasPrefix(job.tenant, job.prompt.slice(0, end))
    const lost = plan.writes.filter(isLost)
    for (const one of lost) plan.dropWrite(one)
    if (lost.length > 0) job.onCacheChange?.(plan.usage)
  }

  /** Takes a slot for a suspended sequence. Returns `undefined` if all slots are in use. */
  acquireForResume(job: GenerationJob): AcquiredSlot | undefined {
    if (this.#slots.isFull) return undefined
    const { prompt, tenant, isDeterministic } = job
    const request = { prompt, tenant, isDeterministic, pieceEnds: [] }
    // No match is long enough, since all tokens come from the file.
    const match = this.#slots.acquire(request, Number.POSITIVE_INFINITY)
    return match && { ...match, snapshot: undefined, divergence: undefined }
  }

  /**
   * Whether a sequence of the job can give up its slot at any time, as far as is known. Most sequences can: if
   * their state cannot be saved, their output so far is evaluated again.
   */
  canSuspend(job: GenerationJob): boolean {
    const { prompt, maxTokens, isDeterministic } = job
    if (!isDeterministic && !hasPromptLogprobs(job)) return true
    const length = prompt.length + maxTokens
    const isExact = !isDeterministic || this.#isRestoreExact(length)
    return isExact && (this.#snapshots?.canSave(length) ?? false)
  }

  /**
   * Saves the state of a sequence and empties its slot. Returns `undefined`, and changes nothing, if the state
   * cannot be saved.
   */
  async suspend(slot: Slot, { isDeterministic }: GenerationJob): Promise<SuspendedState | undefined> {
    const { tokens, pieceEnds } = slot
    const isExact = this.#isRestoreExact(tokens.length)
    const snapshots = this.#snapshots
    if (!snapshots || tokens.length === 0 || (isDeterministic && !isExact)) return undefined
    if (slot.isCopyPending || slot.isCopySource) return undefined
    const saved = await this.#runNative(() =>
      snapshots.suspend(tokens.length, (file) => this.#decoder.save(slot.id, tokens, file)),
    )
    if (!saved) return undefined
    const deterministicLength = isExact ? slot.deterministicLength : 0
    const state = { ...saved, tokens, pieceEnds, deterministicLength }
    this.#empty(slot)
    return state
  }

  /** Loads the state of a suspended sequence into its new slot. Returns `false` if the file is damaged. */
  async resume(acquired: AcquiredSlot, job: GenerationJob, state: SuspendedState): Promise<boolean> {
    const { slot } = acquired
    await this.#saveDisplaced(acquired)
    this.#empty(slot)
    const isLoaded = await this.#runNative(() =>
      this.#snapshots?.resume(state, state.tokens.length, (file) => this.#decoder.load(slot.id, file)),
    )
    if (!isLoaded) {
      this.#decoder.truncate(slot.id, 0)
      return false
    }
    this.#slots.restore(slot, state)
    slot.promptLength = job.prompt.length
    return true
  }

  /** Removes the state of a suspended sequence that does not continue. */
  discard(state: SuspendedState): void {
    this.#snapshots?.discard(state)
  }

  /** Deletes the states of a tenant in free slots and in files, and returns their number. */
  deleteTenant(tenant: string): number {
    const slots = this.#slots.freeSlotsOf(tenant)
    for (const slot of slots) this.#forget(slot)
    return slots.length + (this.#snapshots?.deleteTenant(tenant) ?? 0)
  }

  release(slot: Slot): void {
    this.#slots.release(slot)
  }

  /**
   * Saves the state that a prompt displaces and releases the empty slot, so that other sequences decode before the
   * prompt's own state is loaded. Returns `false`, and changes nothing, if there is nothing to save.
   */
  async saveAndRelease(acquired: AcquiredSlot): Promise<boolean> {
    const { slot, snapshot } = acquired
    if (snapshot) this.#snapshots?.touch(snapshot)
    if (!(await this.#saveDisplaced(acquired))) return false
    this.#forget(slot)
    this.release(slot)
    return true
  }

  /** Forgets the tokens of a slot whose state is unknown. */
  clear(slot: Slot): void {
    this.#slots.clear(slot)
  }

  /**
   * Limits reuse to the tokens before the first breakpoint that is not cached. The state at that breakpoint
   * can be saved only when evaluation stops there.
   */
  #toSlotRequest(job: GenerationJob): SlotRequest {
    const { prompt, tenant, isDeterministic } = job
    const breakpoints = this.breakpointsOf(job)
    const cachedLength = this.cachedPrefixLength(job)
    const maxReuse = this.#cacheableBreakpoints(breakpoints).find(
      ({ length }) => length > cachedLength,
    )?.length
    return {
      ...{ prompt, tenant, isDeterministic, pieceEnds: this.#pieceEndsOf(breakpoints), maxReuse },
      // A copy cannot be saved at a breakpoint before the next step.
      ...(breakpoints.length === 0 && { minCopyLength: this.#decoder.minCopyLength }),
    }
  }

  #cacheableBreakpoints(breakpoints: readonly Breakpoint[]): readonly Breakpoint[] {
    return breakpoints.filter(({ length }) => this.#snapshots?.canSave(length))
  }

  /**
   * Positions of the breakpoints inside a chunk, in tokens. Includes breakpoints that cannot be cached, so
   * that logits do not depend on the cache.
   */
  #pieceEndsOf(breakpoints: readonly Breakpoint[]): readonly number[] {
    return breakpoints.map(({ length }) => length).filter((length) => length % this.#decoder.chunkSize > 0)
  }

  /** Truncates the slot to the matching prefix. Returns `false` if there is none, or truncation fails. */
  #truncate({ slot, matchLength }: SlotMatch): boolean {
    if (matchLength === 0 || !this.#decoder.truncate(slot.id, matchLength)) return false
    this.#slots.truncate(slot, matchLength)
    return true
  }

  /** Copies the prefix of a slot in use. Returns `false` if there is none. */
  async #copy({ slot, copy }: SlotMatch): Promise<boolean> {
    if (!copy || copy.source.tokens.length < copy.length) return false
    const { source, length } = copy
    this.#empty(slot)
    await this.#runNative(() => this.#decoder.copy(source.id, slot.id))
    this.#slots.startCopy(source, slot)
    if (!this.#decoder.truncate(slot.id, length)) return false
    this.#slots.truncate(slot, length)
    return true
  }

  /** Loads the snapshot into the slot, or empties the slot. */
  async #restore(slot: Slot, snapshot: Snapshot | undefined): Promise<void> {
    this.#empty(slot)
    if (!snapshot) return
    const isLoaded = await this.#runNative(() =>
      this.#snapshots?.load(snapshot, (file) => this.#decoder.load(slot.id, file)),
    )
    if (!isLoaded) {
      this.#decoder.truncate(slot.id, 0)
      return
    }
    const { tokens, pieceEnds, isDeterministic } = snapshot
    const deterministicLength = isDeterministic ? tokens.length : 0
    this.#slots.restore(slot, { tokens, pieceEnds, deterministicLength })
  }

  #forget(slot: Slot): void {
    this.#empty(slot)
    slot.tenant = undefined
    slot.promptLength = 0
  }

  #empty(slot: Slot): void {
    this.#slots.clear(slot)
    this.#decoder.truncate(slot.id, 0)
  }

  /** Saves the state that another prompt displaces, and returns `true`, unless it is cheap to evaluate again. */
  async #saveDisplaced({ slot, matchLength, previousTenant }: SlotMatch): Promise<boolean> {
    const { chunkSize, canTruncate } = this.#decoder
    // A model that cannot truncate has saved its snapshot during prefill.
    if (!this.#snapshots || previousTenant === undefined || !canTruncate) return false
    const length = Math.min(snapshotLength(slot.promptLength, chunkSize), slot.tokens.length)
    const isWorthSaving = (kept: number): boolean => length - kept >= worthSavingChunks * chunkSize
    if (!isWorthSaving(matchLength)) return false
    // The snapshot of a breakpoint near the end may be longer than `length`.
    const snapshot = this.#snapshots.findLongest({
      prompt: slot.tokens,
      tenant: previousTenant,
      isDeterministic: false,
      pieceEnds: [],
    })
    if (!isWorthSaving(snapshot?.tokens.length ?? 0) || !this.#decoder.truncate(slot.id, length)) return false
    this.#slots.truncate(slot, length)
    await this.#saveSlot(slot, previousTenant, this.#snapshots)
    return true
  }

  async #saveSlot(
    slot: Slot,
    tenant: string,
    snapshots: SnapshotStore,
    lifetime?: CacheLifetime,
  ): Promise<void> {
    const { length } = slot.tokens
    const tokens = [...slot.tokens]
    const isDeterministic = slot.deterministicLength === length && this.#isRestoreExact(length)
    const state = { tenant, tokens, isDeterministic, pieceEnds: [...slot.pieceEnds], lifetime }
    await this.#runNative(() => snapshots.save(state, (file) => this.#decoder.save(slot.id, tokens, file)))
  }

  /** Waits until a state is saved or loaded. */
  async #runNative<T>(work: () => T | Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      const result = work()
      this.#onNativeWork()
      return await result
    } finally {
      this.#transferredAt = performance.now()
      this.#transferMs = this.#transferredAt - startedAt
    }
  }

  #isRestoreExact(length: number): boolean {
    return length <= this.#decoder.windowSize
  }
}

/** Whether prompt logprobs are requested. Cached states have none, so the whole prompt is evaluated. */
export const hasPromptLogprobs = ({ onPromptLogprobs }: CacheablePrompt): boolean =>
  onPromptLogprobs !== undefined
