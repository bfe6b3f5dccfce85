/** Grammars as native code holds answers to them: each is compiled once, and every answer goes on from a copy. */
import type { Llama, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { Grammar, Use } from '../model.ts'
import type { Library } from './library.ts'

/** So many are kept, since the same are asked for again and again. */
const keptGrammars = 16

export function grammarCompiler(
  { LlamaGrammarEvaluationState: State }: Library,
  llama: Llama,
  model: LlamaModel,
): Use['grammar'] {
  const kept = new Map<string, Grammar>()
  return async (source) => {
    const known = kept.get(source) ?? (await compile(source))
    kept.delete(source)
    kept.set(source, known)
    for (const [oldest] of kept) if (kept.size > keptGrammars) kept.delete(oldest)
    return known
  }
  async function compile(source: string): Promise<Grammar> {
    try {
      const beginning = new State({ model, grammar: await llama.createGrammar({ grammar: source }) })
      return { begin: () => new State(beginning) }
    } catch (cause) {
      throw new LlmError('invalid_request', 'The engine refuses this grammar.', { issue: 'value' }, { cause })
    }
  }
}
