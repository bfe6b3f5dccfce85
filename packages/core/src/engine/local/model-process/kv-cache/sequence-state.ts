import type { Token } from 'node-llama-cpp'
import type { PromptPrefix } from './prefix-index.ts'

/** Describes the KV state of a sequence: its tokens, and how they were evaluated. */
export interface SequenceState extends Pick<PromptPrefix, 'tenant' | 'lifetime'> {
  readonly tokens: readonly Token[]
  /**
   * Whether continuing from this state gives the same logits as evaluating the whole sequence again with the
   * same piece ends.
   */
  readonly isDeterministic: boolean
  /** Piece ends: lengths in tokens at which evaluation stopped inside a chunk, at a breakpoint. */
  readonly pieceEnds: readonly number[]
}
