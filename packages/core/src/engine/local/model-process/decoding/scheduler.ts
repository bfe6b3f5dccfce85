/**
 * All answers of one model, side by side: one step for those that speak, then one chunk of a prompt for one that
 * waits, and again. Nothing else touches the model meanwhile.
 */
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { Breakpoint, CachePlan } from '../kv-cache/cache-plan.ts'
import { isTold, PromptCache, type Taken } from '../kv-cache/prompt-cache.ts'
import type { Slot } from '../kv-cache/slots.ts'
import type { Snapshots } from '../kv-cache/snapshots.ts'
import type { Progress } from '../model.ts'
import type { Ending, Job, Runner } from '../runner.ts'
import type { Decoder, Followers, Piece, Sampler } from './decoder.ts'
import { StepCosts } from './step-planner.ts'

interface Running {
  readonly job: Job
  readonly slot: Slot
  readonly sampler: Sampler
  readonly end: (how: Ending | LlmError) => void
  /** Of its prompt. */
  readonly breakpoints: readonly Breakpoint[]
  readonly plan: CachePlan
  /** When its prompt was read last, counted in chunks. */
  readAt: number
  /** A part of its prompt. */
  hasRead: boolean
  /** The token that was drawn last, and was not put through the model yet. Absent while the prompt is read. */
  last: Token | undefined
  /** When it was drawn. */
  drewAt: number
  drawn: number
  /** Its last token is drawn. The place is free as soon as the model rests. */
  over: boolean
  /** Its caller knows. */
  ended: boolean
}

interface Waiting extends Pick<Running, 'job' | 'end'> {
  /** What it has already, where it was interrupted. */
  readonly begun?: Pick<Running, 'sampler' | 'drawn' | 'plan'>
}

/** What one answer puts into a step. */
interface Part {
  readonly running: Running
  readonly tokens: readonly Token[]
  /** Whether a token is drawn behind it. */
  readonly draws: boolean
  readonly followers?: Followers | undefined
}

/** A prompt whose odds are asked for is read in pieces of so many at most: the logits of a whole vocabulary are kept for each. */
const mostFollowers = 64

/** So long nothing may be done for want of readers before it is said that this is no standstill. */
const signOfLifeMs = 1_000

/** So long those who speak wait for short prompts, and for the chunk that is read by then. */
const longestPauseMs = 1_000

export class Scheduler implements Runner {
  readonly #decoder: Decoder
  readonly #cache: PromptCache
  readonly #costs = new StepCosts()
  readonly #progress: Progress
  #waiting: Waiting[] = []
  #running: Running[] = []
  /** What callers have not heard yet. */
  #untold: (() => void)[] = []
  #chunks = 0
  #working: Promise<void> | undefined
  /** Ends a pause. */
  #wake: (() => void) | undefined
  /** Since places were last given: who comes just then, or meanwhile, must not be slept over. */
  #isWoken = false

  /** @param snapshots absent: nothing is kept but what slots hold */
  constructor(decoder: Decoder, progress: Progress, snapshots?: Snapshots) {
    this.#decoder = decoder
    this.#progress = progress
    this.#cache = new PromptCache(decoder, snapshots, () => this.#tell())
  }

  run(job: Job): Promise<Ending> {
    return new Promise((resolve, reject) => {
      const end: Running['end'] = (how) => (typeof how === 'string' ? resolve(how) : reject(how))
      this.#waiting.push({ job, end })
      this.#working ??= this.#work()
      this.wake()
    })
  }

  wake(): void {
    this.#isWoken = true
    this.#wake?.()
  }

  async rest(): Promise<void> {
    await this.#working
  }

  /** Between two steps the model rests: only then places are given and taken. */
  async #work(): Promise<void> {
    // Calls that come together begin together.
    await setImmediate()
    for (;;) {
      this.#isWoken = false
      this.#sweep()
      await this.#grant()
      // Somebody may have come while a place was given.
      if (this.#running.length + this.#waiting.length === 0) break
      if (this.#active.length === 0) {
        await this.#pause()
        continue
      }
      if (!this.#readsOn) await this.#speak()
      await this.#read()
    }
    this.#working = undefined
  }

  /** All that could be said waits to be read. */
  async #pause(): Promise<void> {
    const over = new AbortController()
    this.#tell()
    // What was told may have ended an answer; and somebody may have left, or read on, since places were given.
    const hasChanged = ({ job }: Waiting): boolean => job.signal.aborted
    if (this.#running.some((running) => !isAtWork(running) || hasChanged(running))) return
    if (this.#isWoken || this.#waiting.some(hasChanged) || this.#active.length > 0) return
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#wake = resolve
      }),
      delay(signOfLifeMs, undefined, { signal: over.signal }).catch(() => {}),
    ])
    this.#wake = undefined
    over.abort()
    this.#progress.steps++
  }

  #sweep(): void {
    for (const running of this.#running) if (running.job.signal.aborted) this.#finish(running, 'left')
    // No step follows beside which they would hear.
    if (!this.#running.some(isAtWork)) this.#tell()
    for (const { slot, sampler } of this.#running.filter(({ over }) => over)) {
      sampler.dispose()
      this.#cache.release(slot)
    }
    this.#running = this.#running.filter(isAtWork)
    const left = this.#waiting.filter(({ job }) => job.signal.aborted)
    this.#waiting = this.#waiting.filter(({ job }) => !job.signal.aborted)
    for (const { end, begun } of left) {
      begun?.sampler.dispose()
      end('left')
    }
  }

  /** Whose answers run in the smallest number is next, and among those who came first; after all, the background. */
  async #grant(): Promise<void> {
    while (this.#waiting.length > 0) {
      const runningOf = ({ job: { tenant } }: Waiting): number =>
        this.#running.filter(({ job }) => job.tenant === tenant).length
      const ready = this.#waiting.filter(({ job, begun }) => !begun || !job.isAhead?.())
      if (ready.length === 0) return
      const foreground = ready.filter(({ job }) => !job.background)
      const candidates = foreground.length > 0 ? foreground : ready
      const next = candidates.reduce((best, one) => (runningOf(one) < runningOf(best) ? one : best))
      const taken = this.#cache.take(next.job)
      if (!taken) {
        if (foreground.length > 0 && this.#interrupt()) continue
        return
      }
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      await this.#start(next, taken)
    }
  }

  /** Takes the place of a background answer, which goes on later: what it has said is read then, not said again. */
  #interrupt(): boolean {
    this.#tell()
    const found = this.#running.findLast(
      (running) => isAtWork(running) && canWait(running) && !isLostIfRead(running),
    )
    if (!found) return false
    const { job, slot, sampler, drawn, plan, last, end } = found
    const prompt = last === undefined ? job.prompt : [...slot.tokens, last]
    this.#waiting.unshift({ job: { ...job, prompt }, end, begun: { sampler, drawn, plan } })
    this.#running = this.#running.filter((running) => running !== found)
    this.#cache.release(slot)
    return true
  }

  async #start({ job, end, begun }: Waiting, taken: Taken): Promise<void> {
    const { slot, divergence } = taken
    try {
      const prepared = await this.#cache.prepare(taken, job)
      const plan = begun?.plan ?? prepared
      const sampler = begun?.sampler ?? this.#decoder.sampler(job.draw, job.prompt, job.grammar)
      if (!begun) job.onStart(plan.cached, divergence)
      const running: Running = {
        job,
        slot,
        sampler,
        end,
        breakpoints: this.#cache.breakpointsOf(job),
        plan,
        readAt: ++this.#chunks,
        hasRead: false,
        last: undefined,
        drewAt: 0,
        drawn: begun?.drawn ?? 0,
        over: false,
        ended: false,
      }
      this.#running.push(running)
      await this.#cache.save(job, slot, plan)
    } catch (cause) {
      begun?.sampler.dispose()
      this.#cache.empty(slot)
      this.#cache.release(slot)
      end(LlmError.from(cause))
    }
  }

  /** The background pauses while anybody else is at work. */
  get #active(): Running[] {
    const all = this.#running.filter((running) => isAtWork(running) && !isPaused(running))
    const foreground = all.filter(({ job }) => !job.background)
    return foreground.length > 0 ? foreground : all
  }

  /** A step for many costs little more than one for few: who comes with a short prompt speaks with those who do already. */
  get #readsOn(): boolean {
    const drewAt = this.#active.flatMap(({ last, drewAt }) => (last === undefined ? [] : [drewAt]))
    const isPause = performance.now() - Math.min(...drewAt) < longestPauseMs
    return isPause && this.#active.some((running) => this.#isShort(running))
  }

  /** Nothing of its prompt is read yet, and one chunk is enough. */
  #isShort({ job, slot, hasRead }: Running): boolean {
    return !hasRead && job.prompt.length - slot.tokens.length <= this.#decoder.chunkSize
  }

  /** One token for each answer that speaks. */
  async #speak(): Promise<void> {
    const speaking = new Map(
      this.#active
        .filter(({ last }) => last !== undefined)
        .sort((a, b) => a.slot.id - b.slot.id)
        .map((running) => [running.slot.id, running]),
    )
    const alone = [...speaking.values()].filter(goesAlone)
    const together = [...speaking.keys()].filter((id) => !alone.some(({ slot }) => slot.id === id))
    for (const ids of [...alone.map(({ slot }) => [slot.id]), ...this.#costs.plan(together)]) {
      const parts = ids.flatMap((id) => {
        const running = speaking.get(id)
        return running && isAtWork(running) ? [{ running, tokens: [running.last as Token], draws: true }] : []
      })
      if (parts.length === 0) continue
      const startedAt = performance.now()
      await this.#step(parts)
      if (parts.length === ids.length) this.#costs.observe(ids.length, performance.now() - startedAt)
    }
  }

  /**
   * One chunk: of the prompt that waits longest, and of others as much as still fits. Where nobody else is at work, and
   * of short prompts, several: many rows are read faster than few and few.
   */
  async #read(): Promise<void> {
    const { chunkSize } = this.#decoder
    // States are saved between two chunks.
    const atOnce = this.#decoder.cutsBack ? this.#decoder.chunksAtOnce : 1
    const isOnly = this.#active.length === 1
    let read = 0
    const parts: Part[] = []
    const reading = this.#active.filter(({ last }) => last === undefined)
    for (const running of reading.sort((a, b) => a.readAt - b.readAt)) {
      const { prompt } = running.job
      const from = running.slot.tokens.length
      const told = isTold(running.job)
      const isSingle = told || goesAlone(running)
      const stop = this.#nextStop(running)
      // Behind a breakpoint the model itself would divide several chunks otherwise.
      const isBehindStop = running.slot.clean === from && from % chunkSize > 0
      const chunks = isOnly && !isSingle && !isBehindStop ? atOnce : 1
      const to = endOfPiece(from, stop, this.#rowsOf(running.job), chunks)
      const alone = isSingle || this.#isKept(running, to)
      const most = chunkSize * (isOnly || this.#isShort(running) ? atOnce : 1)
      if (read + to - from > most || (alone && parts.length > 0)) continue
      read = alone ? Number.POSITIVE_INFINITY : read + to - from
      running.readAt = ++this.#chunks
      running.hasRead = true
      parts.push({
        running,
        tokens: prompt.slice(from, to),
        draws: to === prompt.length && running.job.limit > 0,
        ...(told && { followers: { tokens: prompt.slice(from + 1, to + 1), sampler: running.sampler } }),
      })
    }
    if (parts.length > 0) await this.#step(parts.sort((a, b) => a.running.slot.id - b.running.slot.id))
    for (const { running } of parts) await this.#cache.save(running.job, running.slot, running.plan)
  }

  /** The next breakpoint, or the end of its prompt. What is less than a chunk before a breakpoint is read for itself. */
  #nextStop({ job, slot, breakpoints }: Running): number {
    const from = slot.tokens.length
    const next = breakpoints.find(({ length }) => length > from)?.length
    if (next === undefined) return job.prompt.length
    const whole = next - (next % this.#decoder.chunkSize)
    return whole > from ? whole : next
  }

  /** Whether a piece of a prompt with breakpoints is going to be kept: beside others its sums would come out different. */
  #isKept({ slot, breakpoints }: Running, to: number): boolean {
    const { chunkSize } = this.#decoder
    const { length: from } = slot.tokens
    const isEnd = to % chunkSize === 0 || breakpoints.some(({ length }) => length === to)
    return breakpoints.length > 0 && isEnd && slot.clean === from && to - from <= chunkSize
  }

  /** At once, of a prompt. */
  #rowsOf(job: Job): number {
    const { chunkSize } = this.#decoder
    return isTold(job) ? Math.min(chunkSize, mostFollowers) : chunkSize
  }

  async #step(parts: readonly Part[]): Promise<void> {
    const drawing = this.#decoder.decode(parts.map(toPiece))
    // What was drawn in the last step becomes text while the model works on this one.
    this.#tell()
    const drawn = await drawing.catch((error: unknown) => ({ error }))
    this.#progress.steps++
    if ('error' in drawn) return this.#recover(parts, drawn.error)
    for (const [index, part] of parts.entries()) this.#took(part, drawn[index], parts.length === 1)
  }

  /** A failure hits all of a step, though mostly one of them is to blame. */
  async #recover(parts: readonly Part[], cause: unknown): Promise<void> {
    for (const part of parts) {
      const { slot } = part.running
      const isBack = this.#decoder.forget(slot.id, slot.tokens.length)
      if (parts.length > 1 && isBack) await this.#step([part])
      else {
        this.#cache.empty(slot)
        this.#finish(part.running, failed(cause))
      }
    }
  }

  /** @param isAlone the model divides several into pieces of its own */
  #took(
    { running, tokens, draws, followers }: Part,
    token: Token | Error | undefined,
    isAlone: boolean,
  ): void {
    const { slot, job } = running
    const inChunks = isAlone && running.last === undefined && this.#rowsOf(job) === this.#decoder.chunkSize
    this.#cache.append(slot, tokens, inChunks, job)
    // It was enough while this step was made.
    if (running.over) return
    if (token instanceof Error || (draws && token === undefined)) {
      this.#finish(running, failed(token))
      return
    }
    const { followerOdds = [] } = running.sampler
    if (followers) this.#later(running, () => job.onPrompt?.(followerOdds))
    if (token === undefined) {
      running.over = job.limit === 0 && slot.tokens.length === job.prompt.length
      if (running.over) this.#later(running, () => this.#finish(running, 'limit'))
      return
    }
    const isEnd = this.#decoder.isEnd(token)
    if (!isEnd) running.drawn++
    running.last = token
    running.drewAt = performance.now()
    running.over = isEnd || running.drawn >= job.limit
    const { over } = running
    const { odds } = running.sampler
    this.#later(running, () => {
      const goesOn = isEnd || job.onToken(token, odds)
      if (!goesOn) this.#finish(running, 'enough')
      else if (over) this.#finish(running, isEnd ? 'end' : 'limit')
    })
  }

  /** Beside the next step. */
  #later(running: Running, tell: () => void): void {
    this.#untold.push(() => {
      if (running.ended) return
      try {
        tell()
      } catch (cause) {
        this.#finish(running, LlmError.from(cause))
      }
    })
  }

  #tell(): void {
    const untold = this.#untold
    this.#untold = []
    for (const tell of untold) tell()
  }

  #finish(running: Running, how: Ending | LlmError): void {
    if (!running.ended) running.end(how)
    running.over = true
    running.ended = true
  }
}

/** At a multiple of chunks. As few rows are slow, of several chunks the last one takes along what would be less than one. */
function endOfPiece(from: number, length: number, chunkSize: number, chunks: number): number {
  const end = from - (from % chunkSize) + chunks * chunkSize
  const left = length - end
  if (left <= 0) return length
  return chunks > 1 && left < chunkSize ? end - chunkSize : end
}

const isAtWork = ({ over }: Running): boolean => !over

/** Its reader has enough to read. */
const isPaused = ({ job, last }: Running): boolean => last !== undefined && job.isAhead?.() === true

const canWait = (running: Running): boolean => running.job.background || isPaused(running)

/** Kernels add up in another order for one row than for several: now and then another token is drawn. */
const goesAlone = ({ job }: Running): boolean => job.repeatable

/** What it has said would be read in chunks, and sums come out different then; or what was told would be told again. */
const isLostIfRead = ({ job, last, hasRead }: Running): boolean =>
  (job.repeatable && last !== undefined) || (isTold(job) && hasRead)

const toPiece = ({ running: { job, slot, sampler }, tokens, draws, followers }: Part): Piece => ({
  sequence: slot.id,
  position: slot.tokens.length,
  tokens,
  sampler: draws ? sampler : undefined,
  ...(followers && { followers }),
  repeatable: job.repeatable,
})

const failed = (cause: unknown): LlmError =>
  new LlmError('upstream', 'The model failed on this prompt.', {}, { cause })
