/** Vectors of embedding and reranking calls, as the model process sends them. */
import type { EngineCall } from '../engine.ts'
import { decodeVector } from '../wire/vectors.ts'
import type { CallResult, VectorResult } from './ipc/messages.ts'

interface DecodedVector {
  readonly index: number
  readonly vector: readonly number[]
  readonly inputTokens: number
}

/** Returns a function that decodes a vector and reports the tokens of its text. */
export const createVectorReceiver =
  ({ onInputTokens }: EngineCall) =>
  (result: CallResult): DecodedVector => {
    const { vector, ...fields } = result as VectorResult
    onInputTokens?.(fields.inputTokens)
    return { ...fields, vector: decodeVector(vector) }
  }

/** Sorts vectors by input. They arrive in order of completion. */
export const sortVectors = (results: readonly DecodedVector[]): readonly (readonly number[])[] =>
  [...results].sort((a, b) => a.index - b.index).map(({ vector }) => vector)

export const sumInputTokens = (results: readonly DecodedVector[]): number =>
  results.reduce((sum, { inputTokens }) => sum + inputTokens, 0)
