/** Size of KV states, measured at load, so that it is known before a state is written. */
import type { Token } from 'node-llama-cpp'
import type { Decoder } from '../decoding/decoder.ts'

const anyToken = 0 as Token

/**
 * Evaluates two tokens and saves the state after each. Returns the size of the state of a sequence in bytes, by
 * its number of tokens. With a sliding window, it is a lower bound for longer sequences. Returns `undefined` if
 * the states cannot be saved.
 * @param file is written and not removed
 */
export async function measureStateSize(
  decoder: Decoder,
  file: string,
): Promise<((length: number) => number) | undefined> {
  const sizes: number[] = []
  try {
    for (const position of [0, 1]) {
      await decoder.decode([{ sequence: 0, position, tokens: [anyToken], isDeterministic: false }])
      sizes.push(await decoder.save(0, Array<Token>(position + 1).fill(anyToken), file))
    }
  } catch {
    return undefined
  } finally {
    decoder.truncate(0, 0)
  }
  const [one = 0, two = 0] = sizes
  const bytesPerToken = two - one
  return (length) => one + bytesPerToken * (Math.min(length, decoder.windowSize) - 1)
}
