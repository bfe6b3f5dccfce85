/**
 * Gives slots to queued prompts. A sequence that has to give up its slot is suspended: its KV state is saved, and
 * it continues with the next free slot. All else about it stays in memory.
 */
import { LlmError } from '../../../../errors.ts'
import { clamp } from '../../../../util/clamp.ts'
import type { AcquiredSlot, PromptCache } from '../kv-cache/prompt-cache.ts'
import type { StepCounter } from '../model.ts'
import type { Decoder } from './decoder.ts'
import { type Competitor, FairClock } from './fair-clock.ts'
import {
  finish,
  isPaused,
  isUnfinished,
  needsState,
  type QueuedPrompt,
  type RunningSequence,
  type SuspendedSequence,
} from './running-sequence.ts'
import {
  hasOutput,
  listReady,
  listVictims,
  newAnswerLeadMs,
  type SlotShares,
  selectNextPrompt,
  toQueuedPrompt,
  withReplay,
} from './slot-assignment.ts'

/** Minimum time from a failed attempt to save a state until the next one, in ms. */
const minPinMs = 1_000
/** The same, relative to the duration of the attempt, since no sequence continues meanwhile. */
const pinPerAttempt = 9

/** Bounds of `SlotShares.promptLeadMs`. */
const promptLeadsMs = { min: 20, max: newAnswerLeadMs }
/** Bounds of `SlotShares.turnLeadMs`. With the upper bound, a turn takes at most a second. */
const turnLeadsMs = { min: 50, max: 500 }
/** `turnLeadMs`, relative to the time that switches of all slots take: short turns for small states. */
const turnPerSwitch = 8
/**
 * `promptLeadMs`, and the minimum time between two switches for sequences that continue, relative to the duration
 * of a switch, since no sequence is decoded meanwhile.
 */
const pausePerSwitch = 3
/**
 * Time after which a round of decode steps without all sequences is enough between two transfers, relative to the
 * duration of the last one, since no sequence is decoded during a transfer.
 */
const pausePerTransfer = 3
/** Minimum of that time, in ms. */
const minTransferPauseMs = 50
/** How long a new sequence keeps its slot without a token, in ms. A turn without one would be wasted. */
const firstTokenMs = 500

export class SlotScheduler {
  readonly #decoder: Decoder
  readonly #cache: PromptCache
  readonly #progress: StepCounter
  readonly #flushDeferred: () => void
  /** Times for which tenants have held slots. */
  readonly #clock = new FairClock({ countsDeparted: true })
  /** Time up to which `#clock` counts, in ms. */
  #chargedAt = 0
  /** Moving average of the time to suspend a sequence and to resume it, in ms. Absent until one has resumed. */
  #switchMs: number | undefined
  /** Time of the last switch for a sequence that continues, in ms. */
  #switchedAt = 0
  /** End of the last round of decode steps, in ms. */
  decodedAt = 0
  #queue: QueuedPrompt[] = []
  #running: RunningSequence[] = []

  /** @param flushDeferred runs the callbacks of the last step */
  constructor(decoder: Decoder, cache: PromptCache, progress: StepCounter, flushDeferred: () => void) {
    this.#decoder = decoder
    this.#cache = cache
    this.#progress = progress
    this.#flushDeferred = flushDeferred
  }

  get queue(): readonly QueuedPrompt[] {
    return this.#queue
  }

  get running(): readonly RunningSequence[] {
    return this.#running
  }

  /** Sequences that do not pause. Background sequences pause while a foreground sequence does not. */
  get ready(): readonly RunningSequence[] {
    const all = this.#running.filter((running) => isUnfinished(running) && !isPaused(running))
    const foreground = all.filter(({ job }) => !job.background)
    return foreground.length > 0 ? foreground : all
  }

  /**
   * Whether a state may be saved or loaded, which stops all sequences: each that decodes has taken a step since
   * the last time. A sequence that shares a long round with other tenants may miss it.
   */
  get canTransfer(): boolean {
    const { transferredAt, transferMs } = this.#cache
    const pauseMs = Math.max(minTransferPauseMs, pausePerTransfer * transferMs)
    const hadRound = this.decodedAt > transferredAt && performance.now() - transferredAt >= pauseMs
    return (
      hadRound ||
      this.ready.every(({ lastToken, sampledAt }) => lastToken === undefined || sampledAt > transferredAt)
    )
  }

  get isIdle(): boolean {
    return this.#running.length + this.#queue.length === 0
  }

  enqueue(prompt: QueuedPrompt): void {
    this.#queue.push(prompt)
  }

  /** Call it when the first prompt arrives after a pause, which counts for no tenant. */
  startClock(): void {
    this.#chargedAt = performance.now()
  }

  /** Frees the slots of sequences that have ended, and assigns free slots. Call it between two steps. */
  async update(): Promise<void> {
    this.#charge()
    this.#removeFinished()
    await this.#assignSlots()
  }

  #removeFinished(): void {
    for (const running of this.#running) if (running.job.signal.aborted) finish(running, 'aborted')
    // No step follows, so the callbacks run now.
    if (!this.#running.some(isUnfinished)) this.#flushDeferred()
    for (const { slot, sampler } of this.#running.filter(({ isFinished }) => isFinished)) {
      sampler.dispose()
      this.#cache.release(slot)
    }
    this.#running = this.#running.filter(isUnfinished)
    const aborted = this.#queue.filter(({ job }) => job.signal.aborted)
    this.#queue = this.#queue.filter(({ job }) => !job.signal.aborted)
    for (const { settle, suspended } of aborted) {
      this.#disposeOf(suspended)
      settle('aborted')
    }
  }

  #disposeOf(suspended: SuspendedSequence | undefined): void {
    suspended?.sampler.dispose()
    if (suspended?.state) this.#cache.discard(suspended.state)
  }

  /**
   * Charges tenants for the time for which their sequences have held slots. Background sequences are not
   * charged while they give way to foreground sequences.
   */
  #charge(): void {
    const active = this.#running.filter((running) => isUnfinished(running) && !isPaused(running))
    const waiting = listReady(this.#queue, this.#shares)
    const hasForeground = [...active, ...waiting].some(({ job }) => !job.background)
    const listCharged = (prompts: readonly Pick<QueuedPrompt, 'job'>[]): readonly Competitor[] =>
      prompts.map(({ job }) => job).filter(({ background }) => !(hasForeground && background))
    const now = performance.now()
    for (const job of listCharged(this.#running)) this.#clock.charge(job, now - this.#chargedAt)
    this.#chargedAt = now
    this.#clock.setCompetitors(listCharged([...active, ...waiting]), listCharged(waiting))
  }

  get #shares(): SlotShares {
    const { sequenceCount } = this.#decoder
    const switchMs = this.#switchMs ?? 0
    const turnMs = turnPerSwitch * (this.#switchMs ?? Number.POSITIVE_INFINITY) * sequenceCount
    return {
      running: this.#running,
      clock: this.#clock,
      slotCount: sequenceCount,
      promptLeadMs: clamp(pausePerSwitch * switchMs, promptLeadsMs.min, promptLeadsMs.max),
      turnLeadMs: clamp(turnMs, turnLeadsMs.min, turnLeadsMs.max),
      canEndTurn: performance.now() - this.#switchedAt >= pausePerSwitch * switchMs,
      canSuspend: (job) => this.#cache.canSuspend(job),
    }
  }

  async #assignSlots(): Promise<void> {
    while (this.canTransfer) {
      const next = selectNextPrompt(this.#queue, this.#shares)
      if (!next) return
      if (await this.#tryStart(next)) continue
      // A prompt without output does not wait for an answer that may not continue yet.
      const prompt = hasOutput(next)
        ? selectNextPrompt(
            this.#queue.filter((one) => !hasOutput(one)),
            this.#shares,
          )
        : undefined
      if (!prompt || !(await this.#tryStart(prompt))) return
    }
  }

  /** Starts the prompt, or frees a slot for it. Returns `false` if it has to wait for a slot. */
  async #tryStart(next: QueuedPrompt): Promise<boolean> {
    const free = this.#acquire(next)
    const acquired = free ?? ((await this.#preempt(next)) ? this.#acquire(next) : undefined)
    if (!acquired) return false
    const isLoaded = next.suspended?.state !== undefined || acquired.snapshot !== undefined
    if (isLoaded && (await this.#cache.saveAndRelease(acquired))) return true
    this.#queue.splice(this.#queue.indexOf(next), 1)
    await this.#start(next, acquired)
    if (!free && hasOutput(next)) this.#switchedAt = performance.now()
    return true
  }

  #acquire({ job, suspended }: QueuedPrompt): AcquiredSlot | undefined {
    return suspended?.state ? this.#cache.acquireForResume(job) : this.#cache.acquire(job)
  }

  /** Frees a slot for the prompt. Returns `false` if no sequence may give up its slot for it. */
  async #preempt(next: QueuedPrompt): Promise<boolean> {
    if (listVictims(next, this.#shares).length === 0) return false
    this.#flushDeferred()
    // The slot of a sequence that has just ended is free before the next step.
    if (!this.#running.every(isUnfinished)) return false
    for (const victim of listVictims(next, this.#shares)) if (await this.#suspend(victim)) return true
    return false
  }

  /** Takes the slot from a sequence. Returns `false` if the sequence needs its state, which cannot be saved. */
  async #suspend(victim: RunningSequence): Promise<boolean> {
    const { job, slot } = victim
    const startedAt = performance.now()
    const state = await this.#cache.suspend(slot, job)
    this.#progress.steps++
    const suspendMs = performance.now() - startedAt
    if (!state && needsState(victim)) {
      victim.pinnedUntil = startedAt + suspendMs + Math.max(minPinMs, pinPerAttempt * suspendMs)
      return false
    }
    this.#queue.unshift(toQueuedPrompt(victim, { state, suspendMs }))
    this.#running = this.#running.filter((running) => running !== victim)
    this.#cache.release(slot)
    return true
  }

  async #start(queued: QueuedPrompt, acquired: AcquiredSlot): Promise<void> {
    const { settle, suspended } = queued
    const { slot } = acquired
    try {
      const running = await (suspended
        ? this.#resume(queued, suspended, acquired)
        : this.#begin(queued, acquired))
      this.#running.push(running)
    } catch (cause) {
      this.#disposeOf(suspended)
      this.#cache.clear(slot)
      this.#cache.release(slot)
      settle(LlmError.from(cause))
    }
  }

  async #begin({ job, settle }: QueuedPrompt, acquired: AcquiredSlot): Promise<RunningSequence> {
    const plan = await this.#cache.prepare(acquired, job)
    const sampler = this.#decoder.createSampler(job.sampling, job.prompt, job.grammar)
    job.onStart(plan.usage, acquired.divergence)
    const keepsSlotUntil = performance.now() + firstTokenMs
    return this.#createSequence({ job, settle, plan, sampler, keepsSlotUntil }, acquired)
  }

  /** Continues a sequence that gave up its slot: from its saved state, or from a replay of its output. */
  async #resume(
    { job, settle }: QueuedPrompt,
    suspended: SuspendedSequence,
    acquired: AcquiredSlot,
  ): Promise<RunningSequence> {
    const { state, suspendMs, lastToken, hasPrefilled, plan, sampler, sampledCount } = suspended
    const from = performance.now()
    const isRestored = state !== undefined && (await this.#cache.resume(acquired, job, state))
    this.#progress.steps++
    const common = { job, settle, plan, sampler, sampledCount }
    if (isRestored) {
      const now = performance.now()
      const switchMs = suspendMs + (now - from)
      this.#switchMs ??= switchMs
      this.#switchMs += (switchMs - this.#switchMs) / 4
      const keepsSlotUntil = now + switchMs
      return this.#createSequence(
        { ...common, lastToken, sampledAt: now, hasPrefilled, keepsSlotUntil },
        acquired,
      )
    }
    if (state && needsState({ job, lastToken, hasPrefilled })) throw stateLost()
    const replayed = state ? withReplay(job, state.tokens, lastToken) : job
    await this.#cache.prepare(acquired, replayed)
    return this.#createSequence(
      { ...common, job: replayed, replayedFrom: from, keepsSlotUntil: Number.POSITIVE_INFINITY },
      acquired,
    )
  }

  #createSequence(
    given: Pick<RunningSequence, 'job' | 'settle' | 'plan' | 'sampler'> & Partial<RunningSequence>,
    { slot }: AcquiredSlot,
  ): RunningSequence {
    return {
      slot,
      breakpoints: this.#cache.breakpointsOf(given.job),
      prefilledAt: performance.now(),
      hasPrefilled: false,
      lastToken: undefined,
      sampledAt: 0,
      sampledCount: 0,
      stepMs: 0,
      keepsSlotUntil: 0,
      replayedFrom: undefined,
      pinnedUntil: 0,
      savedLength: 0,
      isFinished: false,
      isSettled: false,
      ...given,
    }
  }
}

const stateLost = (): LlmError =>
  new LlmError('upstream', 'The saved state of this answer is lost. Repeat the request.')
