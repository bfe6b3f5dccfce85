/**
 * Schedules all sequences of one model. Decode steps alternate with prefill steps, which evaluate the prompts
 * of further sequences. No other code uses the model while the scheduler runs.
 */
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { type AcquiredSlot, PromptCache } from '../kv-cache/prompt-cache.ts'
import type { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { StepCounter } from '../model.ts'
import type { GenerationJob, Runner, RunOutcome } from '../runner.ts'
import type { Decoder } from './decoder.ts'
import { maxRowsOf, selectPrefill } from './prefill-plan.ts'
import {
  isDecodedAlone,
  isPaused,
  isShortPrefill,
  isUnfinished,
  type QueuedPrompt,
  type RunningSequence,
  type StepInput,
  toBatchEntry,
} from './running-sequence.ts'
import { selectNextPrompt, selectVictim, toQueuedPrompt } from './slot-assignment.ts'
import { StepPlanner } from './step-planner.ts'

/**
 * Interval at which the step counter grows while all sequences wait for slow clients. Otherwise, the watchdog
 * would assume a hang.
 */
const heartbeatMs = 1_000

/** How long decoding may wait for short prompts, so that they join the same batch. */
const maxDecodePauseMs = 1_000

export class Scheduler implements Runner {
  readonly #decoder: Decoder
  readonly #cache: PromptCache
  readonly #planner = new StepPlanner()
  readonly #progress: StepCounter
  #queue: QueuedPrompt[] = []
  #running: RunningSequence[] = []
  /** Callbacks of the last decode or prefill step. They run while the model computes the next one. */
  #deferred: (() => void)[] = []
  #chunkCount = 0
  #loop: Promise<void> | undefined
  /** Ends the pause in `#waitForReaders`. */
  #wake: (() => void) | undefined
  /** Whether `wake` was called since slots were last assigned. If so, the loop must not pause. */
  #isWoken = false

  /** @param snapshots if absent, prompts are cached in slots only */
  constructor(decoder: Decoder, progress: StepCounter, snapshots?: SnapshotStore) {
    this.#decoder = decoder
    this.#progress = progress
    this.#cache = new PromptCache(decoder, snapshots, () => this.#flushDeferred())
  }

  run(job: GenerationJob): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      const settle: RunningSequence['settle'] = (how) =>
        typeof how === 'string' ? resolve(how) : reject(how)
      this.#queue.push({ job, settle })
      this.#loop ??= this.#runLoop()
      this.wake()
    })
  }

  wake(): void {
    this.#isWoken = true
    this.#wake?.()
  }

  async whenIdle(): Promise<void> {
    await this.#loop
  }

  /** Slots are assigned only between two steps. */
  async #runLoop(): Promise<void> {
    // Waits until all calls of this turn of the event loop have arrived, so that they start together.
    await setImmediate()
    for (;;) {
      this.#isWoken = false
      this.#removeFinished()
      await this.#assignSlots()
      // A job may have arrived while a slot was prepared.
      if (this.#running.length + this.#queue.length === 0) break
      if (this.#active.length === 0) {
        await this.#waitForReaders()
        continue
      }
      if (!this.#prefersPrefill) await this.#decode()
      await this.#prefill()
    }
    this.#loop = undefined
  }

  /** Pauses while every sequence waits for its client to read. */
  async #waitForReaders(): Promise<void> {
    const timeout = new AbortController()
    this.#flushDeferred()
    // After the slots were assigned, a callback may have ended a sequence, and a client may have disconnected
    // or read more output.
    const hasChanged = ({ job }: QueuedPrompt): boolean => job.signal.aborted
    if (this.#running.some((running) => !isUnfinished(running) || hasChanged(running))) return
    if (this.#isWoken || this.#queue.some(hasChanged) || this.#active.length > 0) return
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#wake = resolve
      }),
      delay(heartbeatMs, undefined, { signal: timeout.signal }).catch(() => {}),
    ])
    this.#wake = undefined
    timeout.abort()
    this.#progress.steps++
  }

  #removeFinished(): void {
    for (const running of this.#running) if (running.job.signal.aborted) this.#finish(running, 'aborted')
    // No step follows, so the callbacks run now.
    if (!this.#running.some(isUnfinished)) this.#flushDeferred()
    for (const { slot, sampler } of this.#running.filter(({ isFinished }) => isFinished)) {
      sampler.dispose()
      this.#cache.release(slot)
    }
    this.#running = this.#running.filter(isUnfinished)
    const aborted = this.#queue.filter(({ job }) => job.signal.aborted)
    this.#queue = this.#queue.filter(({ job }) => !job.signal.aborted)
    for (const { settle, interrupted } of aborted) {
      interrupted?.sampler.dispose()
      settle('aborted')
    }
  }

  async #assignSlots(): Promise<void> {
    for (;;) {
      const next = selectNextPrompt(this.#queue, this.#running)
      if (!next) return
      const acquired = this.#cache.acquire(next.job)
      if (acquired) {
        this.#queue.splice(this.#queue.indexOf(next), 1)
        await this.#start(next, acquired)
      } else if (next.job.background || !this.#preempt()) return
    }
  }

  /** Frees a slot for a foreground job. Returns `false` if no sequence may lose its slot. */
  #preempt(): boolean {
    this.#flushDeferred()
    const victim = selectVictim(this.#running)
    if (!victim) return false
    this.#queue.unshift(toQueuedPrompt(victim))
    this.#running = this.#running.filter((running) => running !== victim)
    this.#cache.release(victim.slot)
    return true
  }

  async #start({ job, settle, interrupted }: QueuedPrompt, acquired: AcquiredSlot): Promise<void> {
    const { slot, divergence } = acquired
    try {
      const prepared = await this.#cache.prepare(acquired, job)
      const plan = interrupted?.plan ?? prepared
      const sampler =
        interrupted?.sampler ?? this.#decoder.createSampler(job.sampling, job.prompt, job.grammar)
      if (!interrupted) job.onStart(plan.usage, divergence)
      const running: RunningSequence = {
        job,
        slot,
        sampler,
        settle,
        breakpoints: this.#cache.breakpointsOf(job),
        plan,
        prefilledAt: ++this.#chunkCount,
        hasPrefilled: false,
        lastToken: undefined,
        sampledAt: 0,
        sampledCount: interrupted?.sampledCount ?? 0,
        isFinished: false,
        isSettled: false,
      }
      this.#running.push(running)
      await this.#cache.save(job, slot, plan)
    } catch (cause) {
      interrupted?.sampler.dispose()
      this.#cache.clear(slot)
      this.#cache.release(slot)
      settle(LlmError.from(cause))
    }
  }

  /** Sequences that can take a step. Background sequences pause while a foreground sequence can take one. */
  get #active(): RunningSequence[] {
    const all = this.#running.filter((running) => isUnfinished(running) && !isPaused(running))
    const foreground = all.filter(({ job }) => !job.background)
    return foreground.length > 0 ? foreground : all
  }

  /**
   * Whether short prompts are evaluated before decoding continues. Their sequences then join the decode
   * batch, and a larger batch costs little more.
   */
  get #prefersPrefill(): boolean {
    const { chunkSize } = this.#decoder
    const sampleTimes = this.#active.flatMap(({ lastToken, sampledAt }) =>
      lastToken === undefined ? [] : [sampledAt],
    )
    const isWithinPause = performance.now() - Math.min(...sampleTimes) < maxDecodePauseMs
    return isWithinPause && this.#active.some((running) => isShortPrefill(running, chunkSize))
  }

  /** Samples one token for each sequence that has finished prefill. */
  async #decode(): Promise<void> {
    const decoding = new Map(
      this.#active
        .filter(({ lastToken }) => lastToken !== undefined)
        .sort((a, b) => a.slot.id - b.slot.id)
        .map((running) => [running.slot.id, running]),
    )
    const single = [...decoding.values()].filter(isDecodedAlone)
    const batchable = [...decoding.keys()].filter((id) => !single.some(({ slot }) => slot.id === id))
    for (const ids of [...single.map(({ slot }) => [slot.id]), ...this.#planner.plan(batchable)]) {
      const parts = ids.flatMap((id) => {
        const running = decoding.get(id)
        return running && isUnfinished(running)
          ? [{ running, tokens: [running.lastToken as Token], isSampling: true }]
          : []
      })
      if (parts.length === 0) continue
      const startedAt = performance.now()
      await this.#step(parts)
      if (parts.length === ids.length) this.#planner.observe(ids.length, performance.now() - startedAt)
    }
  }

  async #prefill(): Promise<void> {
    const selected = selectPrefill(this.#active, this.#decoder)
    for (const { running } of selected) {
      running.prefilledAt = ++this.#chunkCount
      running.hasPrefilled = true
    }
    const parts = selected.toSorted((a, b) => a.running.slot.id - b.running.slot.id)
    if (parts.length > 0) await this.#step(parts)
    for (const { running } of parts) await this.#cache.save(running.job, running.slot, running.plan)
  }

  async #step(parts: readonly StepInput[]): Promise<void> {
    const decoding = this.#decoder.decode(parts.map(toBatchEntry))
    // Runs the callbacks of the last step while the model computes this step.
    this.#flushDeferred()
    const sampled = await decoding.catch((error: unknown) => ({ error }))
    this.#progress.steps++
    if ('error' in sampled) return this.#recover(parts, sampled.error)
    for (const [index, part] of parts.entries()) this.#applyStep(part, sampled[index], parts.length === 1)
  }

  /** Repeats a failed step one sequence at a time, since usually a single sequence causes the failure. */
  async #recover(parts: readonly StepInput[], cause: unknown): Promise<void> {
    for (const part of parts) {
      const { slot } = part.running
      const isBack = this.#decoder.truncate(slot.id, slot.tokens.length)
      if (parts.length > 1 && isBack) await this.#step([part])
      else {
        this.#cache.clear(slot)
        this.#finish(part.running, modelFailed(cause))
      }
    }
  }

  /**
   * @param isAlone whether no other sequence was in the step. With others, llama.cpp splits prompts at other
   * positions
   */
  #applyStep(
    { running, tokens, isSampling, targets }: StepInput,
    token: Token | Error | undefined,
    isAlone: boolean,
  ): void {
    const { slot, job } = running
    const inChunks =
      isAlone &&
      running.lastToken === undefined &&
      maxRowsOf(job, this.#decoder.chunkSize) === this.#decoder.chunkSize
    this.#cache.append(slot, tokens, inChunks, job)
    // The caller stopped the sequence during the step.
    if (running.isFinished) return
    if (token instanceof Error || (isSampling && token === undefined)) {
      this.#finish(running, modelFailed(token))
      return
    }
    const { targetLogprobs = [] } = running.sampler
    if (targets) this.#defer(running, () => job.onPromptLogprobs?.(targetLogprobs))
    if (token === undefined) {
      running.isFinished = job.maxTokens === 0 && slot.tokens.length === job.prompt.length
      if (running.isFinished) this.#defer(running, () => this.#finish(running, 'limit'))
      return
    }
    const isEnd = this.#decoder.isEog(token)
    if (!isEnd) running.sampledCount++
    running.lastToken = token
    running.sampledAt = performance.now()
    running.isFinished = isEnd || running.sampledCount >= job.maxTokens
    const { isFinished } = running
    const { lastLogprobs } = running.sampler
    this.#defer(running, () => {
      const isContinuing = isEnd || job.onToken(token, lastLogprobs)
      if (!isContinuing) this.#finish(running, 'stopped')
      else if (isFinished) this.#finish(running, isEnd ? 'end' : 'limit')
    })
  }

  /** Runs the callback while the model computes the next step. */
  #defer(running: RunningSequence, callback: () => void): void {
    this.#deferred.push(() => {
      if (running.isSettled) return
      try {
        callback()
      } catch (cause) {
        this.#finish(running, LlmError.from(cause))
      }
    })
  }

  #flushDeferred(): void {
    const deferred = this.#deferred
    this.#deferred = []
    for (const callback of deferred) callback()
  }

  #finish(running: RunningSequence, outcome: RunOutcome | LlmError): void {
    if (!running.isSettled) running.settle(outcome)
    running.isFinished = true
    running.isSettled = true
  }
}

const modelFailed = (cause: unknown): LlmError =>
  new LlmError('upstream', 'The model failed on this prompt.', {}, { cause })
