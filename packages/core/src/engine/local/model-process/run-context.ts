import type { GrammarBuilder } from './grammar-builder.ts'
import type { RuntimeModel, StepCounter } from './model.ts'
import type { PromptRenderer } from './render.ts'

/** What one call has to work with: the model, the workers beside it, and its caller. */
export interface RunContext {
  readonly model: RuntimeModel
  readonly renderer: PromptRenderer
  readonly grammars: Pick<GrammarBuilder, 'build'>
  readonly progress: StepCounter
  /** Cache partition of the caller. */
  readonly tenant: string
  readonly background: boolean
  readonly signal: AbortSignal
  /** Whether the client has read so little of the output that decoding pauses. */
  readonly isBackpressured?: () => boolean
}
