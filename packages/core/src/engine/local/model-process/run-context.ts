import type { Token } from 'node-llama-cpp'
import type { GrammarBuilder } from './grammar-builder.ts'
import type { RuntimeModel, StepCounter } from './model.ts'
import type { PromptRenderer } from './render.ts'
import type { GenerationJob } from './runner.ts'
import type { CpuBudget } from './workers/cpu-budget.ts'

/** Context of one call: the model, the workers of its process, and properties of the call. */
export interface RunContext {
  readonly model: RuntimeModel
  readonly renderer: Pick<PromptRenderer, 'render'>
  readonly grammars: Pick<GrammarBuilder, 'build'>
  readonly progress: StepCounter
  /** CPU time for the texts of the call. */
  readonly budget: CpuBudget
  /** Calls of one tenant share cached prompts, and their part of the model's time. */
  readonly tenant: string
  /** Part of the model's time that the tenant gets, relative to other tenants. */
  readonly weight: number
  readonly background: boolean
  readonly signal: AbortSignal
  /** Tokens of the prompt. Set if an earlier call counted them. */
  readonly countedPrompt?: readonly Token[] | undefined
  /** Keeps the tokens of a counted prompt for the call that answers it. */
  readonly keepCounted?: (tokens: readonly Token[]) => void
  /** Whether decoding pauses because the client has left too much output unread. */
  readonly isBackpressured?: GenerationJob['isBackpressured']
}
