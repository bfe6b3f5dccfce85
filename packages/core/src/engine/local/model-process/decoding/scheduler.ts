/**
 * All answers of one model, side by side: one step for those that speak, then one chunk of a prompt for one that
 * waits, and again. Nothing else touches the model meanwhile.
 */
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { Breakpoint, CachePlan } from '../kv-cache/cache-plan.ts'
import { type AcquiredSlot, hasPromptLogprobs, PromptCache } from '../kv-cache/prompt-cache.ts'
import type { Slot } from '../kv-cache/slots.ts'
import type { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { StepCounter } from '../model.ts'
import type { GenerationJob, Runner, RunOutcome } from '../runner.ts'
import type { BatchEntry, Decoder, PromptTargets, Sampler } from './decoder.ts'
import { StepPlanner } from './step-planner.ts'

interface RunningSequence {
  readonly job: GenerationJob
  readonly slot: Slot
  readonly sampler: Sampler
  readonly settle: (how: RunOutcome | LlmError) => void
  /** Of its prompt. */
  readonly breakpoints: readonly Breakpoint[]
  readonly plan: CachePlan
  /** When its prompt was read last, counted in chunks. */
  prefilledAt: number
  /** A part of its prompt. */
  hasPrefilled: boolean
  /** The token that was drawn last, and was not put through the model yet. Absent while the prompt is read. */
  lastToken: Token | undefined
  /** When it was drawn. */
  sampledAt: number
  sampledCount: number
  /** Its last token is drawn. The place is free as soon as the model rests. */
  isFinished: boolean
  /** Its caller knows. */
  isSettled: boolean
}

interface QueuedPrompt extends Pick<RunningSequence, 'job' | 'settle'> {
  /** What it has already, where it was interrupted. */
  readonly interrupted?: Pick<RunningSequence, 'sampler' | 'sampledCount' | 'plan'>
}

/** What one answer puts into a step. */
interface StepInput {
  readonly running: RunningSequence
  readonly tokens: readonly Token[]
  /** Whether a token is drawn behind it. */
  readonly isSampling: boolean
  readonly targets?: PromptTargets | undefined
}

/** A prompt whose odds are asked for is read in pieces of so many at most: the logits of a whole vocabulary are kept for each. */
const maxTargetRows = 64

/** So long nothing may be done for want of readers before it is said that this is no standstill. */
const heartbeatMs = 1_000

/** So long those who speak wait for short prompts, and for the chunk that is read by then. */
const maxDecodePauseMs = 1_000

export class Scheduler implements Runner {
  readonly #decoder: Decoder
  readonly #cache: PromptCache
  readonly #planner = new StepPlanner()
  readonly #progress: StepCounter
  #queue: QueuedPrompt[] = []
  #running: RunningSequence[] = []
  /** What callers have not heard yet. */
  #deferred: (() => void)[] = []
  #chunkCount = 0
  #loop: Promise<void> | undefined
  /** Ends a pause. */
  #wake: (() => void) | undefined
  /** Since places were last given: who comes just then, or meanwhile, must not be slept over. */
  #isWoken = false

  /** @param snapshots absent: nothing is kept but what slots hold */
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

  /** Between two steps the model rests: only then places are given and taken. */
  async #runLoop(): Promise<void> {
    // Calls that come together begin together.
    await setImmediate()
    for (;;) {
      this.#isWoken = false
      this.#removeFinished()
      await this.#assignSlots()
      // Somebody may have come while a place was given.
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

  /** All that could be said waits to be read. */
  async #waitForReaders(): Promise<void> {
    const timeout = new AbortController()
    this.#flushDeferred()
    // What was told may have ended an answer; and somebody may have left, or read on, since places were given.
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
    // No step follows beside which they would hear.
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

  /** Whose answers run in the smallest number is next, and among those who came first; after all, the background. */
  async #assignSlots(): Promise<void> {
    while (this.#queue.length > 0) {
      const countRunning = ({ job: { tenant } }: QueuedPrompt): number =>
        this.#running.filter(({ job }) => job.tenant === tenant).length
      const ready = this.#queue.filter(({ job, interrupted }) => !interrupted || !job.isBackpressured?.())
      if (ready.length === 0) return
      const foreground = ready.filter(({ job }) => !job.background)
      const candidates = foreground.length > 0 ? foreground : ready
      const next = candidates.reduce((best, one) => (countRunning(one) < countRunning(best) ? one : best))
      const taken = this.#cache.acquire(next.job)
      if (!taken) {
        if (foreground.length > 0 && this.#preempt()) continue
        return
      }
      this.#queue.splice(this.#queue.indexOf(next), 1)
      await this.#start(next, taken)
    }
  }

  /** Takes the place of a background answer, which goes on later: what it has said is read then, not said again. */
  #preempt(): boolean {
    this.#flushDeferred()
    const victim = this.#running.findLast(
      (running) => isUnfinished(running) && canBePreempted(running) && !isLostIfPreempted(running),
    )
    if (!victim) return false
    const { job, slot, sampler, sampledCount, plan, lastToken, settle } = victim
    const prompt = lastToken === undefined ? job.prompt : [...slot.tokens, lastToken]
    this.#queue.unshift({ job: { ...job, prompt }, settle, interrupted: { sampler, sampledCount, plan } })
    this.#running = this.#running.filter((running) => running !== victim)
    this.#cache.release(slot)
    return true
  }

  async #start({ job, settle, interrupted }: QueuedPrompt, taken: AcquiredSlot): Promise<void> {
    const { slot, divergence } = taken
    try {
      const prepared = await this.#cache.prepare(taken, job)
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

  /** The background pauses while anybody else is at work. */
  get #active(): RunningSequence[] {
    const all = this.#running.filter((running) => isUnfinished(running) && !isPaused(running))
    const foreground = all.filter(({ job }) => !job.background)
    return foreground.length > 0 ? foreground : all
  }

  /** A step for many costs little more than one for few: who comes with a short prompt speaks with those who do already. */
  get #prefersPrefill(): boolean {
    const drewAt = this.#active.flatMap(({ lastToken, sampledAt }) =>
      lastToken === undefined ? [] : [sampledAt],
    )
    const isWithinPause = performance.now() - Math.min(...drewAt) < maxDecodePauseMs
    return isWithinPause && this.#active.some((running) => this.#isShortPrefill(running))
  }

  /** Nothing of its prompt is read yet, and one chunk is enough. */
  #isShortPrefill({ job, slot, hasPrefilled }: RunningSequence): boolean {
    return !hasPrefilled && job.prompt.length - slot.tokens.length <= this.#decoder.chunkSize
  }

  /** One token for each answer that speaks. */
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

  /**
   * One chunk: of the prompt that waits longest, and of others as much as still fits. Where nobody else is at work, and
   * of short prompts, several: many rows are read faster than few and few.
   */
  async #prefill(): Promise<void> {
    const { chunkSize } = this.#decoder
    // States are saved between two chunks.
    const maxChunks = this.#decoder.canTruncate ? this.#decoder.chunksAtOnce : 1
    const isOnly = this.#active.length === 1
    let rows = 0
    const parts: StepInput[] = []
    const prefilling = this.#active.filter(({ lastToken }) => lastToken === undefined)
    for (const running of prefilling.sort((a, b) => a.prefilledAt - b.prefilledAt)) {
      const { prompt } = running.job
      const from = running.slot.tokens.length
      const isScored = hasPromptLogprobs(running.job)
      const isSingle = isScored || isDecodedAlone(running)
      const pieceLimit = this.#nextPieceLimit(running)
      // Behind a breakpoint the model itself would divide several chunks otherwise.
      const isBehindBreakpoint = running.slot.deterministicLength === from && from % chunkSize > 0
      const chunks = isOnly && !isSingle && !isBehindBreakpoint ? maxChunks : 1
      const to = computePieceEnd(from, pieceLimit, this.#maxRowsOf(running.job), chunks)
      const isAlone = isSingle || this.#isCachedAt(running, to)
      const maxRows = chunkSize * (isOnly || this.#isShortPrefill(running) ? maxChunks : 1)
      if (rows + to - from > maxRows || (isAlone && parts.length > 0)) continue
      rows = isAlone ? Number.POSITIVE_INFINITY : rows + to - from
      running.prefilledAt = ++this.#chunkCount
      running.hasPrefilled = true
      parts.push({
        running,
        tokens: prompt.slice(from, to),
        isSampling: to === prompt.length && running.job.maxTokens > 0,
        ...(isScored && { targets: { tokens: prompt.slice(from + 1, to + 1), sampler: running.sampler } }),
      })
    }
    if (parts.length > 0) await this.#step(parts.sort((a, b) => a.running.slot.id - b.running.slot.id))
    for (const { running } of parts) await this.#cache.save(running.job, running.slot, running.plan)
  }

  /** The next breakpoint, or the end of its prompt. What is less than a chunk before a breakpoint is read for itself. */
  #nextPieceLimit({ job, slot, breakpoints }: RunningSequence): number {
    const from = slot.tokens.length
    const next = breakpoints.find(({ length }) => length > from)?.length
    if (next === undefined) return job.prompt.length
    const wholeChunks = next - (next % this.#decoder.chunkSize)
    return wholeChunks > from ? wholeChunks : next
  }

  /** Whether a piece of a prompt with breakpoints is going to be kept: beside others its sums would come out different. */
  #isCachedAt({ slot, breakpoints }: RunningSequence, to: number): boolean {
    const { chunkSize } = this.#decoder
    const { length: from } = slot.tokens
    const isEnd = to % chunkSize === 0 || breakpoints.some(({ length }) => length === to)
    return breakpoints.length > 0 && isEnd && slot.deterministicLength === from && to - from <= chunkSize
  }

  /** At once, of a prompt. */
  #maxRowsOf(job: GenerationJob): number {
    const { chunkSize } = this.#decoder
    return hasPromptLogprobs(job) ? Math.min(chunkSize, maxTargetRows) : chunkSize
  }

  async #step(parts: readonly StepInput[]): Promise<void> {
    const decoding = this.#decoder.decode(parts.map(toBatchEntry))
    // What was drawn in the last step becomes text while the model works on this one.
    this.#flushDeferred()
    const sampled = await decoding.catch((error: unknown) => ({ error }))
    this.#progress.steps++
    if ('error' in sampled) return this.#recover(parts, sampled.error)
    for (const [index, part] of parts.entries()) this.#applyStep(part, sampled[index], parts.length === 1)
  }

  /** A failure hits all of a step, though mostly one of them is to blame. */
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

  /** @param isAlone the model divides several into pieces of its own */
  #applyStep(
    { running, tokens, isSampling, targets }: StepInput,
    token: Token | Error | undefined,
    isAlone: boolean,
  ): void {
    const { slot, job } = running
    const inChunks =
      isAlone && running.lastToken === undefined && this.#maxRowsOf(job) === this.#decoder.chunkSize
    this.#cache.append(slot, tokens, inChunks, job)
    // It was enough while this step was made.
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

  /** Beside the next step. */
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

/** At a multiple of chunks. As few rows are slow, of several chunks the last one takes along what would be less than one. */
function computePieceEnd(from: number, length: number, chunkSize: number, chunks: number): number {
  const end = from - (from % chunkSize) + chunks * chunkSize
  const remaining = length - end
  if (remaining <= 0) return length
  return chunks > 1 && remaining < chunkSize ? end - chunkSize : end
}

const isUnfinished = ({ isFinished }: RunningSequence): boolean => !isFinished

/** Its reader has enough to read. */
const isPaused = ({ job, lastToken }: RunningSequence): boolean =>
  lastToken !== undefined && job.isBackpressured?.() === true

const canBePreempted = (running: RunningSequence): boolean => running.job.background || isPaused(running)

/** Kernels add up in another order for one row than for several: now and then another token is drawn. */
const isDecodedAlone = ({ job }: RunningSequence): boolean => job.isDeterministic

/** What it has said would be read in chunks, and sums come out different then; or what was told would be told again. */
const isLostIfPreempted = ({ job, lastToken, hasPrefilled }: RunningSequence): boolean =>
  (job.isDeterministic && lastToken !== undefined) || (hasPromptLogprobs(job) && hasPrefilled)

const toBatchEntry = ({
  running: { job, slot, sampler },
  tokens,
  isSampling,
  targets,
}: StepInput): BatchEntry => ({
  sequence: slot.id,
  position: slot.tokens.length,
  tokens,
  sampler: isSampling ? sampler : undefined,
  ...(targets && { targets }),
  isDeterministic: job.isDeterministic,
})

const modelFailed = (cause: unknown): LlmError =>
  new LlmError('upstream', 'The model failed on this prompt.', {}, { cause })
