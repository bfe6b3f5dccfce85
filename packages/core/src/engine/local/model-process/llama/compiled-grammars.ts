import { LRUCache } from 'lru-cache'
import type { Llama, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CompiledGrammar } from '../decoding/decoder.ts'
import type { ModelBackend } from '../model.ts'
import type { Turns } from '../workers/turns.ts'
import type { LlamaLibrary } from './library.ts'

/** A conversation sends the same tools with each turn, so its grammar is needed again. */
const maxCachedGrammars = 16

/**
 * Compiles the grammars of all tenants in turn. Calls that wait for their turns with equal grammars compile one.
 *
 * The largest accepted grammar (`grammarLimits`, `checkLimits`) takes this thread 25 ms, and so does the state of
 * each output. States are not copied: llama.cpp searches the whole grammar for each element of each stack of the
 * original, which takes seconds if a large grammar has many deep beginnings.
 */
export function createGrammarCompiler(
  { LlamaGrammarEvaluationState: State }: LlamaLibrary,
  llama: Llama,
  model: LlamaModel,
  turns: Turns,
): ModelBackend['compileGrammar'] {
  const cache = new LRUCache<string, CompiledGrammar>({ max: maxCachedGrammars })
  return async (source, budget) => {
    const compiled =
      cache.get(source) ?? (await turns.run(budget, () => cache.get(source) ?? compile(source)))
    return compiled && { createState: () => budget.measureForTenant(() => compiled.createState()) }
  }

  /** The grammar is in the cache before the next turn, since `createGrammar` does not wait for anything. */
  async function compile(source: string): Promise<CompiledGrammar> {
    try {
      const grammar = await llama.createGrammar({ grammar: source })
      const compiled = { createState: () => new State({ model, grammar }) }
      cache.set(source, compiled)
      return compiled
    } catch (cause) {
      throw new LlmError('invalid_request', 'The engine refuses this grammar.', { issue: 'value' }, { cause })
    }
  }
}
