import type { Llama, LlamaGrammarOptions, LlamaModel } from 'node-llama-cpp'
import { beforeAll, expect, test } from 'vitest'
import { ask, config, textOf } from '../../../../../../../test/support/bindings.ts'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { noiseModel } from '../../../../../../../test/support/models.ts'
import { buildOutputGrammar } from '../../../../grammar/output-grammar.ts'
import type { RuntimeModel } from '../model.ts'
import { Turns } from '../workers/turns.ts'
import { createGrammarCompiler } from './compiled-grammars.ts'
import type { LlamaLibrary } from './library.ts'
import { loadModel } from './load.ts'

let own: RuntimeModel
let fallback: RuntimeModel

beforeAll(async () => {
  own = await loadModel(config, { steps: 0 })
  fallback = await loadModel(config, { steps: 0 }, () => undefined)
})

test('internals and public API apply a grammar, and reject one that llama.cpp rejects', async () => {
  const format = {
    type: 'grammar',
    source: 'root ::= ("Hello" | "Good day") [^.]{0,9} "."',
  } as const
  const signal = new AbortController().signal

  const texts = [own, fallback].map(async (model) => textOf(await ask(model, 'Hello', signal, { format })))

  const [text, publicly] = await Promise.all(texts)
  expect(text).toMatch(/^Hello[^.]{0,9}\.$/)
  expect(publicly).toBe(text)
  await expect(own.compileGrammar('root ::= (', budgetOf())).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

test('a grammar matches characters of several tokens, and words with a leading space', async () => {
  const noise = await loadModel({ ...config, modelPath: noiseModel }, { steps: 0 })
  const format = { type: 'grammar', source: 'root ::= "{ä" [😀-😂]{2} " of " [一-龠]{3} "\\n}"' } as const

  const text = textOf(await ask(noise, 'Hello', undefined, { format }))

  expect(text).toMatch(/^\{ä[😀-😂]{2} of [一-龠]{3}\n\}$/u)
})

test('the compilation of a grammar counts towards the CPU time of its call, once', async () => {
  const source = `root ::= ${Array.from({ length: 20_000 }, (_, index) => `"${index}"`).join(' | ')}`
  const [first, second] = [budgetOf(), budgetOf()]

  await own.compileGrammar(source, first)
  await own.compileGrammar(source, second)

  expect([first.remainingMs < 10_000, second.remainingMs]).toEqual([true, 10_000])
})

test('states of a large grammar with many deep beginnings are created quickly', async () => {
  const rules = Array.from({ length: 190 }, (_, at) => `r${at} ::= r${at + 1} "x"`)
  const words = Array.from({ length: 100 }, (_, index) => `"${index}"`).join(' | ')
  const large = Array.from({ length: 75 }, () => '[a-z]{0,500}').join(' "-" ')
  const source = buildOutputGrammar({
    format: {
      type: 'grammar',
      source: ['root ::= r0 large', ...rules, `r190 ::= ${words}`, `large ::= ${large}`].join('\n'),
    },
  })
  const grammar = await own.compileGrammar(source ?? '', budgetOf())

  const startedAt = performance.now()
  grammar?.createState()

  expect(performance.now() - startedAt).toBeLessThan(1_000)
})

test('calls that ask for equal grammars at the same time compile one, even if one is aborted', async () => {
  const compiled: string[] = []
  const llama = {
    createGrammar: async ({ grammar }: LlamaGrammarOptions) => {
      compiled.push(grammar)
      return {}
    },
  } as unknown as Llama
  const compile = createGrammarCompiler({} as LlamaLibrary, llama, {} as LlamaModel, new Turns())
  const controller = new AbortController()
  const budgets = [budgetOf(), budgetOf({ signal: controller.signal }), budgetOf(), budgetOf()]

  const grammars = Promise.all(budgets.map((budget) => compile('root ::= "a"', budget)))
  controller.abort()

  const answers = await grammars
  expect(compiled).toEqual(['root ::= "a"'])
  expect(answers.map((grammar) => grammar !== undefined)).toEqual([true, false, true, true])
})
