/**
 * Tokenizes texts in a child process if llama.cpp could crash on them, or would block the model process for
 * too long. The child has a large stack, so it survives words that would overflow the stack of this process.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { StepCounter } from './model.ts'
import type { RegexPreTokenizer } from './prompt/regex-pre-tokenizer.ts'
import { textNotTokenizable } from './prompt/tokenizer.ts'
import { BoundedWorker, startProcess } from './workers/bounded-worker.ts'
import { type CpuBudget, callBudgetMs } from './workers/cpu-budget.ts'
import { type PoolWorker, WorkerPool } from './workers/worker-pool.ts'

/** Longest text in characters that this process tokenizes at once. It takes at most 20 ms. */
const maxBlockingLength = 16 * 1024
/** Longest word in characters. It takes 90 MB of the child's stack. */
const maxWordLength = 256 * 1024
const memoryMb = 1_024
const idleMs = 60_000
/** How long a text is rejected after it crashed the child or exceeded its memory, in ms. */
const rejectionMs = 10 * 60_000
const maxRejectedTexts = 1_000

export interface TokenizeJob {
  readonly modelPath: string
  readonly text: string
  /** Whether text that looks like a special token becomes that token. */
  readonly parseSpecial: boolean
}

/** Without a fault of the text, the vocabulary could not be read. */
export type TokenizeResult =
  | { readonly tokens: readonly Token[] }
  | { readonly error: string; readonly isTextAtFault: boolean }

export class IsolatedTokenizer {
  readonly #modelPath: string
  readonly #preTokenizer: RegexPreTokenizer | undefined
  readonly #pool: WorkerPool<TokenizeJob, TokenizeResult>
  /** Errors by text hash. */
  readonly #rejected = new LRUCache<string, LlmError>({ max: maxRejectedTexts, ttl: rejectionMs })

  /**
   * @param preTokenizer absent if the vocabulary takes words of any length
   * @param progress counts tokenized texts
   */
  constructor(
    modelPath: string,
    preTokenizer: RegexPreTokenizer | undefined,
    progress: StepCounter,
    createWorker: () => PoolWorker<TokenizeJob, TokenizeResult> = createProcess,
  ) {
    this.#modelPath = modelPath
    this.#preTokenizer = preTokenizer
    this.#pool = new WorkerPool(createWorker, {
      onProgress: () => {
        progress.steps++
      },
    })
  }

  isNeeded(text: string): boolean {
    return text.length > maxBlockingLength || this.#preTokenizer?.isRisky(text) === true
  }

  limitSlice(text: string): number {
    return this.#preTokenizer?.limitSlice(text) ?? text.length
  }

  isUniform(text: string): boolean {
    return this.#preTokenizer?.isUniform(text) !== false
  }

  /**
   * Charges the budget. Resolves without tokens when its signal aborts. Throws `invalid_request` for a text
   * that cannot be tokenized.
   */
  async tokenize(text: string, parseSpecial: boolean, budget: CpuBudget): Promise<readonly Token[]> {
    if ((this.#preTokenizer?.measureLongWord(text) ?? 0) > maxWordLength) throw wordTooLong()
    const key = createHash('sha256').update(`${parseSpecial}:${text}`).digest('base64')
    const rejection = this.#rejected.get(key)
    if (rejection) throw rejection
    try {
      const result = await this.#pool.run({ modelPath: this.#modelPath, text, parseSpecial }, budget)
      if (result && 'error' in result)
        throw result.isTextAtFault ? textNotTokenizable(result.error) : vocabularyUnreadable(result.error)
      return result?.tokens ?? []
    } catch (cause) {
      const error = LlmError.from(cause)
      // A text that took too long is tokenized again, since the time also depends on the machine.
      const isOutOfTime = budget.remainingMs <= 0 || budget.signal.aborted
      if (error.code === 'invalid_request' && !isOutOfTime) this.#rejected.set(key, error)
      throw error
    }
  }
}

const createProcess = () =>
  new BoundedWorker<TokenizeJob, TokenizeResult>(
    new URL('./native-process.js', import.meta.url),
    { memoryMb, idleMs, limitError: textTooCostly, crashError: textCrashes },
    startProcess,
  )

const wordTooLong = (): LlmError =>
  invalidRequest(
    `The text has a word of more than ${maxWordLength} characters, which is too long for this model's tokenizer. Divide it with spaces.`,
  )

const vocabularyUnreadable = (reason: string): LlmError =>
  new LlmError('upstream', 'The vocabulary of the model file cannot be read again.', {}, { cause: reason })

const textTooCostly = (what: 'time' | 'memory'): LlmError =>
  invalidRequest(
    `The text takes too much ${what} to tokenize. The limit is ${limits[what]} for each call. Send less text, or text with spaces.`,
  )
const limits = { time: `${callBudgetMs / 1_000} s of CPU time`, memory: `${memoryMb} MB` }

const textCrashes = (): LlmError =>
  invalidRequest("The text crashes llama.cpp's tokenizer. Send another text, or use another model.")
