import type { Token } from 'node-llama-cpp'
import type { PromptPrefix } from './prefix-index.ts'

/** KV state of a sequence, and the tokens that it was evaluated from. */
export interface SequenceState extends Pick<PromptPrefix, 'tenant' | 'lifetime'> {
  readonly tokens: readonly Token[]
  /** Continuing from here gives the same logits as evaluating the prompt from its start with the same piece ends. */
  readonly isDeterministic: boolean
  /** Where evaluation stopped at a breakpoint inside a chunk. */
  readonly pieceEnds: readonly number[]
}
