/** Sorts items so that those with a common beginning of the prompt run one after the other, and share its KV state. */
import { createHash } from 'node:crypto'

/**
 * Returns a key for the beginning of a prompt. In the order of the keys, prompts that share their first 256 characters
 * are neighbours, among these those that share 1,024 characters, and so on.
 */
export function toPrefixKey(prompt: string): string {
  let key = ''
  for (const length of lengths) {
    if (prompt.length < length) break
    key += hash(prompt.slice(0, length))
  }
  return key
}

/** In characters. An item that shares less than 256 of them saves little. */
const lengths = [256, 1_024, 4_096, 16_384, 65_536]

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
