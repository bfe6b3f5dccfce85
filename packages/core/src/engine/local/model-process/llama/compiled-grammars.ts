import { LRUCache } from 'lru-cache'
import type { Llama, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CompiledGrammar } from '../decoding/decoder.ts'
import type { ModelBackend } from '../model.ts'
import type { LlamaLibrary } from './library.ts'

/** A conversation sends the same tools with each turn, so its grammar is needed again. */
const maxCachedGrammars = 16

/** Compiles each grammar once. Every output starts from a copy of the initial state of its grammar. */
export function createGrammarCompiler(
  { LlamaGrammarEvaluationState: State }: LlamaLibrary,
  llama: Llama,
  model: LlamaModel,
): ModelBackend['compileGrammar'] {
  const cache = new LRUCache<string, CompiledGrammar>({ max: maxCachedGrammars })
  return async (source) => {
    const grammar = cache.get(source) ?? (await compile(source))
    cache.set(source, grammar)
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
