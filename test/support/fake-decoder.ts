/** A decoder without a model, which checks how the scheduler uses it, and jobs for it. */
import { readFile, writeFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import type {
  BatchEntry,
  Decoder,
  Sample,
  Sampler,
} from '../../packages/core/src/engine/local/model-process/decoding/decoder.ts'
import { toSamplingParams } from '../../packages/core/src/engine/local/model-process/decoding/sampling.ts'
import type { CacheUsage } from '../../packages/core/src/engine/local/model-process/kv-cache/cache-plan.ts'
import type { GenerationJob } from '../../packages/core/src/engine/local/model-process/runner.ts'

export type Token = Parameters<Decoder['isEog']>[0]

const chunkSize = 8
const end = 999 as Token
const sampling = toSamplingParams(
  { seed: 1 },
  { vocabularySize: 1_000, contextSize: 1_000, getEogTokens: () => [] },
)
export const prompt = (length: number, first = 0): Token[] =>
  Array.from({ length }, (_, index) => (first + index) as Token)

export interface FakeDecoderOptions extends Partial<Decoder> {
  failsAt?: (pieces: readonly BatchEntry[]) => boolean
  /** Returns the output token with this index. */
  outputAt?: (index: number, first: Token) => Token | Error
}

export interface FakeDecoder extends Decoder {
  /** Sequence, position and number of tokens of each entry of each step. */
  readonly steps: (readonly [sequence: number, position: number, count: number])[][]
  /** Number of samplers that are not disposed of. */
  samplers: number
}

/**
 * A decoder that samples the first token of the prompt plus 1, 2, 3…, and throws where a real model would
 * fail. The logprob of a token is its negative number.
 */
export function fakeDecoder(options: FakeDecoderOptions = {}): FakeDecoder {
  const cells = new Map<number, Token[]>()
  let isDecoding = false
  const {
    failsAt = () => false,
    outputAt = (index: number, first: Token) => (first + index + 1) as Token,
    ...rest
  } = options
  const fake: FakeDecoder = {
    sequenceCount: 4,
    canTruncate: true,
    chunkSize,
    chunksAtOnce: 2,
    steps: [],
    samplers: 0,
    async decode(pieces) {
      if (isDecoding) throw new Error('A decode step is already running.')
      isDecoding = true
      fake.steps.push(
        pieces.map(({ sequence, position, tokens, guesses = [] }) => [
          sequence,
          position,
          tokens.length + guesses.length,
        ]),
      )
      const ids = pieces.map(({ sequence }) => sequence)
      expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
      for (const { sequence, position, tokens, guesses = [] } of pieces) {
        const stored = cells.get(sequence) ?? []
        expect(stored).toHaveLength(position)
        cells.set(sequence, [...stored, ...tokens, ...guesses])
      }
      await setImmediate()
      isDecoding = false
      if (failsAt(pieces)) throw new Error('The decode step failed.')
      return pieces.map(({ sequence, guesses = [], sampler, targets }) => {
        if (targets) {
          const targetLogprobs = targets.tokens.map((token) => ({ logprob: -token, top: [] }))
          Object.assign(targets.sampler, { targetLogprobs })
        }
        if (!sampler) return []
        const state = sampler as { alive?: boolean; sampled?: number }
        expect(state.alive).toBe(true)
        const samples: (Sample | Error)[] = []
        for (const guess of [...guesses, undefined]) {
          state.sampled = (state.sampled ?? 0) + 1
          const token = outputAt(state.sampled - 1, cells.get(sequence)?.[0] ?? (0 as Token))
          samples.push(token instanceof Error ? token : { token, logprobs: { logprob: -token, top: [] } })
          if (token !== guess) break
        }
        return samples
      })
    },
    truncate(sequence, keep) {
      expect(isDecoding).toBe(false)
      cells.set(sequence, (cells.get(sequence) ?? []).slice(0, keep))
      return true
    },
    minCopyLength: Number.POSITIVE_INFINITY,
    async copy(from, to) {
      expect(isDecoding).toBe(false)
      cells.set(to, [...(cells.get(from) ?? [])])
    },
    isComplete: () => true,
    async save(sequence, tokens, file) {
      expect(isDecoding).toBe(false)
      expect(cells.get(sequence)).toEqual(tokens)
      const text = JSON.stringify(tokens)
      await writeFile(file, text)
      return text.length
    },
    windowSize: Number.POSITIVE_INFINITY,
    async load(sequence, file) {
      expect(isDecoding).toBe(false)
      expect(cells.get(sequence)).toEqual([])
      const saved = JSON.parse(await readFile(file, 'utf8'))
      cells.set(sequence, saved)
      return saved.length
    },
    createSampler() {
      fake.samplers++
      const sampler: Sampler & { alive: boolean } = {
        alive: true,
        dispose() {
          expect(isDecoding).toBe(false)
          sampler.alive = false
          fake.samplers--
        },
      }
      return sampler
    },
    isEog: (token) => token === end,
    setThreads() {},
    ...rest,
  }
  return fake
}

export interface Recorded {
  readonly tokens: Token[]
  reused?: number
  cached?: CacheUsage
}

export function job(tokens: readonly Token[], more: Partial<GenerationJob> = {}): GenerationJob & Recorded {
  const recorded: Recorded = { tokens: [] }
  return Object.assign(recorded, {
    prompt: tokens,
    sampling,
    isDeterministic: false,
    maxTokens: 3,
    tenant: 'ann',
    weight: 1,
    background: false,
    signal: new AbortController().signal,
    onStart: (plan: CacheUsage) => {
      recorded.reused = plan.reusedTokens
      recorded.cached = plan
    },
    onCacheChange: (actual: CacheUsage) => {
      recorded.cached = actual
    },
    onToken: (token: Token) => {
      recorded.tokens.push(token)
      return true
    },
    ...more,
  })
}
