/** At load, within a bound: how many threads are best for an answer, how much of a prompt is read at once, and how long a step takes at worst. */
import type { Token } from 'node-llama-cpp'
import type { Decoder } from '../decoding/decoder.ts'
import type { SamplingParams } from '../decoding/sampling.ts'

/** So often one token goes through the model with each number of threads; less often where there is no choice. */
const timingCounts = { choice: 8, none: 2 }
const calibrationLimitMs = 2_000
/** A chunk of somebody's prompt holds up the answers of others for so long. */
const maxChunkMs = 200
/** What a step is taken to last where nothing was measured. */
export const defaultStepMs = 6_000

/** Rows from which the fast kernel of processors is used: less is never better. */
export const minChunkSize = 64

const anyToken = 0 as Token
const greedyParams: SamplingParams = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0, bias: [] }

export interface Calibration {
  /** For steps of answers. Their memory is the limit mostly, and then more threads only wait for each other. */
  readonly threads: number
  readonly chunkSize: number
  /** What a step takes at worst: a chunk whose tokens cost as much as one alone. */
  readonly stepMs: number
}

/** @param candidates numbers of threads, of which the first is taken where there is no time for others */
export async function calibrate(decoder: Decoder, candidates: readonly number[]): Promise<Calibration> {
  const startedAt = performance.now()
  const timings: { readonly threads: number; readonly ms: number }[] = []
  for (const [index, threads] of candidates.entries()) {
    if (index > 0 && performance.now() - startedAt > calibrationLimitMs) break
    decoder.setThreads(threads, threads)
    const until = startedAt + (calibrationLimitMs * (index + 1)) / candidates.length
    const maxTimings = candidates.length > 1 ? timingCounts.choice : timingCounts.none
    timings.push({ threads, ms: upperQuartile(await measureSteps(decoder, maxTimings, until)) })
  }
  const best = timings.reduce((best, one) => (one.ms < best.ms ? one : best))
  const chunkSize = await findLargestFastChunk(decoder, listHalvings(decoder.chunkSize, minChunkSize))
  return { threads: best.threads, chunkSize, stepMs: best.ms * chunkSize }
}

/** The smallest is taken without a look, and when time is up. */
async function findLargestFastChunk(decoder: Decoder, sizes: readonly number[]): Promise<number> {
  const until = performance.now() + calibrationLimitMs
  for (const size of sizes.slice(0, -1)) {
    // The first time buffers are made, and kernels loaded.
    for (let time = 0; time < 2 && performance.now() < until; time++)
      if ((await measureChunk(decoder, size)) <= maxChunkMs) return size
  }
  return sizes.at(-1) as number
}

async function measureChunk(decoder: Decoder, size: number): Promise<number> {
  const startedAt = performance.now()
  const tokens = Array<Token>(size).fill(anyToken)
  await decoder.decode([{ sequence: 0, position: 0, tokens, isDeterministic: false }])
  const ms = performance.now() - startedAt
  decoder.truncate(0, 0)
  return ms
}

export const listThreadCandidates = (max: number): readonly number[] => listHalvings(max, 1)

/** Half as many, and half of that: what is between makes little difference. */
const listHalvings = (max: number, min: number): readonly number[] =>
  max > min ? [max, ...listHalvings(Math.max(Math.ceil(max / 2), min), min)] : [max]

async function measureSteps(decoder: Decoder, maxTimings: number, until: number): Promise<readonly number[]> {
  const sampler = decoder.createSampler(greedyParams, [])
  const times: number[] = []
  try {
    // The first reads weights from the disk, and makes buffers.
    for (
      let position = 0;
      position <= maxTimings && (position === 0 || performance.now() < until);
      position++
    ) {
      const startedAt = performance.now()
      await decoder.decode([{ sequence: 0, position, tokens: [anyToken], sampler, isDeterministic: false }])
      times.push(performance.now() - startedAt)
    }
  } finally {
    sampler.dispose()
    decoder.truncate(0, 0)
  }
  return times.length > 1 ? times.slice(1) : times
}

/** A number of threads that is fast only now and then is not. */
const upperQuartile = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[(values.length * 3) >> 2] ?? 0
