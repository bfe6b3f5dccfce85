/**
 * Schedules all sequences of one model. Decode steps alternate with prefill steps, which evaluate the prompts
 * of further sequences. Slots, decode steps and prefill steps are shared among tenants by time. No other code
 * uses the model while the scheduler runs.
 */
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { PromptCache } from '../kv-cache/prompt-cache.ts'
import type { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { StepCounter } from '../model.ts'
import type { CacheablePrompt, GenerationJob, Runner, RunnerActivity, RunOutcome } from '../runner.ts'
import { Speculation } from '../speculation/speculation.ts'
import { selectTurn } from './decode-turns.ts'
import type { Decoder, Sample } from './decoder.ts'
import { FairClock } from './fair-clock.ts'
import { maxRowsOf, selectPrefill } from './prefill-plan.ts'
import {
  finish,
  isDecodedAlone,
  isShortPrefill,
  isUnfinished,
  type QueuedPrompt,
  type RunningSequence,
  type StepInput,
  toBatchEntry,
} from './running-sequence.ts'
import { SlotScheduler } from './slot-scheduler.ts'
import { StepPlanner } from './step-planner.ts'

/**
 * Interval at which the step counter grows while all sequences wait for slow clients. Otherwise, the watchdog
 * would assume a hang.
 */
const heartbeatMs = 1_000

/** Duration of a prefill step, in ms, up to which decoding may wait for another one. */
const quickChunkMs = 30

/** How long the second token of an answer may wait for short prompts, so that they join the same batch. */
const maxDecodePauseMs = 1_000

export class Scheduler implements Runner {
  readonly #decoder: Decoder
  readonly #cache: PromptCache
  readonly #slots: SlotScheduler
  readonly #planner = new StepPlanner()
  readonly #speculation: Speculation | undefined
  /** Times of decode steps. The tenant whose turn it is pays for the whole step. */
  readonly #decodeClock = new FairClock()
  /** Times of prefill steps. The tenant of the first prompt pays for the whole step. */
  readonly #prefillClock = new FairClock()
  readonly #progress: StepCounter
  /** Callbacks of the last decode or prefill step. They run while the model computes the next one. */
  #deferred: (() => void)[] = []
  /** Deletions of KV states, for the time between two steps. */
  #deletions: (() => void)[] = []
  #loop: Promise<void> | undefined
  /** Ends the pause in `#waitForReaders`. */
  #wake: (() => void) | undefined
  /** Whether `wake` was called since slots were last assigned. If so, the loop must not pause. */
  #isWoken = false

  /**
   * @param snapshots if absent, prompts are cached in slots only
   * @param speculates whether steps may verify guessed tokens
   */
  constructor(decoder: Decoder, progress: StepCounter, snapshots?: SnapshotStore, speculates = true) {
    this.#decoder = decoder
    this.#progress = progress
    this.#speculation = speculates && decoder.canTruncate ? new Speculation(decoder) : undefined
    const flushDeferred = (): void => this.#flushDeferred()
    this.#cache = new PromptCache(decoder, snapshots, flushDeferred)
    this.#slots = new SlotScheduler(decoder, this.#cache, progress, flushDeferred)
  }

  run(job: GenerationJob): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      const settle: RunningSequence['settle'] = (how) =>
        typeof how === 'string' ? resolve(how) : reject(how)
      this.#slots.enqueue({ job, settle })
      this.#loop ??= this.#runLoop()
      this.wake()
    })
  }

  deleteStates(tenant: string): Promise<number> {
    return new Promise((resolve) => {
      this.#deletions.push(() => resolve(this.#cache.deleteTenant(tenant)))
      this.#loop ??= this.#runLoop()
      this.wake()
    })
  }

  cachedLength(prompt: CacheablePrompt): number {
    return this.#cache.cachedPrefixLength(prompt)
  }

  wake(): void {
    this.#isWoken = true
    this.#wake?.()
  }

  get activity(): RunnerActivity {
    const { running, queue } = this.#slots
    return { activeSequences: running.length, waitingSequences: queue.length, ...this.#cache.savedStates }
  }

  get isDecoding(): boolean {
    const isWaitingForReaders = this.#wake !== undefined
    return this.#loop !== undefined && !isWaitingForReaders
  }

  async whenIdle(): Promise<void> {
    await this.#loop
  }

  /** Slots are assigned only between two steps. */
  async #runLoop(): Promise<void> {
    // Waits until all calls of this turn of the event loop have arrived, so that they start together.
    await setImmediate()
    this.#slots.startClock()
    for (;;) {
      this.#isWoken = false
      // Before slots change hands, which would delay it again and again.
      await this.#saveNext()
      await this.#slots.update()
      // Afterwards, because the update frees the slots of aborted jobs.
      this.#runDeletions()
      // A job may have arrived while a slot was prepared.
      if (this.#slots.isIdle) break
      if (this.#slots.ready.length === 0) {
        await this.#waitForReaders()
        continue
      }
      await this.#prefill()
      if (!this.#prefersPrefill) await this.#decode()
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
    const { running, queue } = this.#slots
    if (running.some((one) => !isUnfinished(one) || hasChanged(one))) return
    if (this.#isWoken || queue.some(hasChanged) || this.#slots.ready.length > 0) return
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

  /** Sequences that can take a step. At a save point, their state is saved first. */
  get #active(): RunningSequence[] {
    return this.#slots.ready.filter((running) => !this.#isUnsaved(running))
  }

  #isUnsaved({ job, slot, plan, lastToken, savedLength }: RunningSequence): boolean {
    const hasOutput = lastToken !== undefined
    return !hasOutput && savedLength !== slot.tokens.length && this.#cache.isSavePoint(job, slot, plan)
  }

  /** Saves one state. Further sequences at save points wait, so that others decode between two saves. */
  async #saveNext(): Promise<void> {
    const next = this.#slots.ready.find((running) => !running.job.signal.aborted && this.#isUnsaved(running))
    if (!next || !this.#slots.canTransfer) return
    next.savedLength = next.slot.tokens.length
    await this.#cache.save(next.job, next.slot, next.plan)
    this.#progress.steps++
  }

  /**
   * Whether short prompts are evaluated before decoding begins, so that prompts that arrive together decode in one
   * batch: a larger batch costs little more. Sequences that have decoded do not wait for that, since one short
   * prompt after the other would stop them. Nor do sequences of other tenants.
   */
  get #prefersPrefill(): boolean {
    const { chunkSize } = this.#decoder
    const active = this.#active
    const decoding = active.filter(({ lastToken }) => lastToken !== undefined)
    const hasBegun = decoding.some(({ sampledCount }) => sampledCount > 1)
    const firstSampledAt = Math.min(...decoding.map(({ sampledAt }) => sampledAt))
    const isWithinPause = performance.now() - firstSampledAt < maxDecodePauseMs
    const delaysOthers = ({ job }: RunningSequence): boolean =>
      decoding.some((other) => other.job.tenant !== job.tenant)
    return (
      !hasBegun &&
      isWithinPause &&
      active.some((running) => isShortPrefill(running, chunkSize) && !delaysOthers(running))
    )
  }

  /**
   * One round of decode steps: samples a token for each sequence that has finished prefill. Sequences of a
   * tenant that has used more time than another one may have to wait for a later round.
   */
  async #decode(): Promise<void> {
    const decoding = new Map(
      this.#active
        .filter(({ lastToken }) => lastToken !== undefined)
        .sort((a, b) => a.slot.id - b.slot.id)
        .map((running) => [running.slot.id, running]),
    )
    const single = [...decoding.values()].filter(isDecodedAlone)
    const batchable = [...decoding.keys()].filter((id) => !single.some(({ slot }) => slot.id === id))
    const groups = [
      ...single.map((running) => [running]),
      ...this.#planner.plan(batchable).map((ids) => ids.map((id) => decoding.get(id) as RunningSequence)),
    ]
    // With several sequences, guesses of one would delay the others.
    const speculation = decoding.size === 1 ? this.#speculation : undefined
    const hasRun = new Set<readonly RunningSequence[]>()
    for (;;) {
      const turn = selectTurn(groups, hasRun, this.#decodeClock)
      if (!turn) break
      const { group, leader } = turn
      hasRun.add(group)
      const parts = group.filter(isUnfinished).map((running) => ({
        running,
        tokens: [running.lastToken as Token],
        guesses: speculation?.guess(running) ?? [],
        isSampling: true,
      }))
      const sampledBefore = leader.sampledCount
      const startedAt = performance.now()
      await this.#step(parts)
      const ms = performance.now() - startedAt
      this.#decodeClock.charge(leader.job, ms)
      for (const { running } of parts) running.stepMs = ms
      const guessCount = parts[0]?.guesses.length ?? 0
      speculation?.observe(guessCount, leader.sampledCount - sampledBefore, ms)
      if (parts.length === group.length && guessCount === 0) this.#planner.observe(group.length, ms)
    }
    this.#slots.decodedAt = performance.now()
  }

  /** Prefills one chunk. If that was quick and one chunk of the prompt is left, another step follows at once. */
  async #prefill(): Promise<void> {
    const startedAt = performance.now()
    const first = await this.#prefillChunk()
    const isQuick = performance.now() - startedAt <= quickChunkMs
    if (!first || !isQuick || first.lastToken !== undefined || !isUnfinished(first)) return
    const { job, slot } = first
    const isAtEnd = job.prompt.length - slot.tokens.length <= maxRowsOf(job, this.#decoder.chunkSize)
    if (isAtEnd && !this.#isUnsaved(first)) await this.#prefillChunk()
  }

  /** Returns the sequence that was first in the step. */
  async #prefillChunk(): Promise<RunningSequence | undefined> {
    const selected = selectPrefill(this.#active, this.#decoder, this.#prefillClock)
    const [first] = selected
    if (!first) return undefined
    const startedAt = performance.now()
    for (const { running } of selected) {
      running.prefilledAt = startedAt
      running.hasPrefilled = true
    }
    const parts = selected.toSorted((a, b) => a.running.slot.id - b.running.slot.id)
    await this.#step(parts)
    this.#prefillClock.charge(first.running.job, performance.now() - startedAt)
    return first.running
  }

  async #step(parts: readonly StepInput[]): Promise<void> {
    const decoding = this.#decoder.decode(parts.map(toBatchEntry))
    // Runs the callbacks of the last step while the model computes this step.
    this.#flushDeferred()
    const sampled = await decoding.catch((error: unknown) => ({ error }))
    this.#progress.steps++
    if ('error' in sampled) {
      this.#cache.endStep()
      return this.#recover(parts, sampled.error)
    }
    for (const [index, part] of parts.entries())
      this.#applyStep(part, sampled[index] ?? [], parts.length === 1)
  }

  /** Repeats a failed step one sequence at a time, since usually a single sequence causes the failure. */
  async #recover(parts: readonly StepInput[], cause: unknown): Promise<void> {
    for (const part of parts) {
      const { slot } = part.running
      const isBack = this.#decoder.truncate(slot.id, slot.tokens.length)
      if (parts.length > 1 && isBack) await this.#step([part])
      else {
        this.#cache.clear(slot)
        finish(part.running, modelFailed(cause))
      }
    }
  }

  /**
   * @param isAlone whether no other sequence was in the step. With others, llama.cpp splits prompts at other
   * positions
   */
  #applyStep(
    { running, tokens, guesses = [], isSampling, targets }: StepInput,
    samples: readonly (Sample | Error)[],
    isAlone: boolean,
  ): void {
    const { slot, job } = running
    const inChunks =
      isAlone &&
      running.lastToken === undefined &&
      maxRowsOf(job, this.#decoder.chunkSize) === this.#decoder.chunkSize
    const sampled = samples.filter((sample): sample is Sample => !(sample instanceof Error))
    const failure = samples.find((sample) => sample instanceof Error)
    // The last sample counts as not evaluated, as after any step.
    const accepted = guesses.slice(0, Math.max(0, sampled.length - 1))
    this.#cache.append(slot, [...tokens, ...accepted], inChunks, job)
    const isWrong = accepted.length < guesses.length
    if (isWrong && !this.#decoder.truncate(slot.id, slot.tokens.length)) {
      this.#cache.clear(slot)
      finish(running, modelFailed('wrong guesses cannot be removed'))
    }
    // The caller may have stopped the sequence during the step.
    if (running.isFinished) return
    const isMissing = isSampling && samples.length === 0
    if (isMissing || (failure && sampled.length === 0)) {
      finish(running, modelFailed(failure))
      return
    }
    const { targetLogprobs = [] } = running.sampler
    if (targets) this.#defer(running, () => job.onPromptLogprobs?.(targetLogprobs))
    if (job.onPrefill && running.lastToken === undefined) {
      const evaluated = slot.tokens.length
      this.#defer(running, () => job.onPrefill?.(evaluated))
    }
    for (const sample of sampled) this.#applySample(running, sample)
    if (failure) {
      running.isFinished = true
      this.#defer(running, () => finish(running, modelFailed(failure)))
    } else if (!isSampling) {
      running.isFinished = job.maxTokens === 0 && slot.tokens.length === job.prompt.length
      if (running.isFinished) this.#defer(running, () => finish(running, 'limit'))
    }
  }

  #applySample(running: RunningSequence, { token, logprobs }: Sample): void {
    const { job } = running
    const isEnd = this.#decoder.isEog(token)
    if (!isEnd) running.sampledCount++
    running.lastToken = token
    running.sampledAt = performance.now()
    if (running.sampledCount <= 1) running.keepsSlotUntil = 0
    if (running.replayedFrom !== undefined) {
      running.keepsSlotUntil = running.sampledAt + (running.sampledAt - running.replayedFrom)
      running.replayedFrom = undefined
    }
    running.isFinished = isEnd || running.sampledCount >= job.maxTokens
    const { isFinished } = running
    this.#defer(running, () => {
      const isContinuing = isEnd || job.onToken(token, logprobs)
      if (!isContinuing) finish(running, 'stopped')
      else if (isFinished) finish(running, isEnd ? 'end' : 'limit')
    })
  }

  /** Runs the callback while the model computes the next step. */
  #defer(running: RunningSequence, callback: () => void): void {
    this.#deferred.push(() => {
      if (running.isSettled) return
      try {
        callback()
      } catch (cause) {
        finish(running, LlmError.from(cause))
      }
    })
  }

  #runDeletions(): void {
    const deletions = this.#deletions
    this.#deletions = []
    for (const run of deletions) run()
  }

  #flushDeferred(): void {
    const deferred = this.#deferred
    this.#deferred = []
    for (const callback of deferred) callback()
  }
}

const modelFailed = (cause: unknown): LlmError =>
  new LlmError('upstream', 'The model failed on this prompt.', {}, { cause })
