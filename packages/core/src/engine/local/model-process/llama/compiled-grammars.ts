import { LRUCache } from 'lru-cache'
import type { Llama, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CompiledGrammar } from '../decoding/decoder.ts'
import type { ModelBackend } from '../model.ts'
import type { CpuBudget } from '../workers/cpu-budget.ts'
import type { Turns } from '../workers/turns.ts'
import type { LlamaLibrary } from './library.ts'

/** A conversation sends the same tools with each turn, so its grammar is needed again. */
const maxCachedGrammars = 16

/**
 * Compiles each grammar once, those of all tenants in turn. Every output starts from a copy of the initial state
 * of its grammar.
 */
export function createGrammarCompiler(
  { LlamaGrammarEvaluationState: State }: LlamaLibrary,
  llama: Llama,
  model: LlamaModel,
  turns: Turns,
): ModelBackend['compileGrammar'] {
  const cache = new LRUCache<string, CompiledGrammar>({ max: maxCachedGrammars })
  return async (source, budget) => {
    const compiled = cache.get(source) ?? (await compile(source, budget))
    if (compiled) cache.set(source, compiled)
    return compiled
  }
  async function compile(source: string, budget: CpuBudget): Promise<CompiledGrammar | undefined> {
    try {
      const grammar = await turns.run(budget, () => llama.createGrammar({ grammar: source }))
      const initialState = grammar && (await turns.run(budget, () => new State({ model, grammar })))
      return initialState && { createState: () => new State(initialState) }
    } catch (cause) {
      throw new LlmError('invalid_request', 'The engine refuses this grammar.', { issue: 'value' }, { cause })
    }
  }
}
