/** Grammars as native code holds answers to them: each is compiled once, and every answer goes on from a copy. */
import type { Llama, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CompiledGrammar } from '../decoding/decoder.ts'
import type { ModelBackend } from '../model.ts'
import type { LlamaLibrary } from './library.ts'

/** So many are kept, since the same are asked for again and again. */
const maxCachedGrammars = 16

export function createGrammarCompiler(
  { LlamaGrammarEvaluationState: State }: LlamaLibrary,
  llama: Llama,
  model: LlamaModel,
): ModelBackend['compileGrammar'] {
  const cache = new Map<string, CompiledGrammar>()
  return async (source) => {
    const grammar = cache.get(source) ?? (await compile(source))
    cache.delete(source)
    cache.set(source, grammar)
    for (const [oldest] of cache) if (cache.size > maxCachedGrammars) cache.delete(oldest)
    return grammar
  }
  async function compile(source: string): Promise<CompiledGrammar> {
    try {
      const initialState = new State({ model, grammar: await llama.createGrammar({ grammar: source }) })
      return { createState: () => new State(initialState) }
    } catch (cause) {
      throw new LlmError('invalid_request', 'The engine refuses this grammar.', { issue: 'value' }, { cause })
    }
  }
}
