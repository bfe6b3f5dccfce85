import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import { GbnfSampler } from '../../../../test/support/gbnf-sampler.ts'
import { anySchema, validator } from '../../../../test/support/random-schemas.ts'
import { LlmError } from '../errors.ts'
import { parseOutput } from '../template/output.ts'
import { selectCallFormat } from '../template/tool-calls/call-formats.ts'
import type { ToolCallFormat } from './constraint.ts'
import { buildOutputGrammar } from './output-grammar.ts'

const template = '<|tool_call>call:<tool_call|>'
const format = selectCallFormat({ template, family: 'gemma', prompt: '' }) as ToolCallFormat

function grammarOf(parameters: object, isRequired = false): string {
  const tool = { name: 'f', parameters, strict: true }
  return buildOutputGrammar({ calls: { tools: [tool], format, isRequired, isParallel: true } }) ?? ''
}

const weather = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer', maximum: 7 },
    unit: { enum: ['C', 'F', null] },
    tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' } },
    'two words': { type: 'boolean' },
  },
  required: ['city'],
}

test.each([
  [true, 'Hello <|tool_ca'],
  [true, 'I see.<|tool_call>call:f{city:<|"|>Oslo "x" <b>\n<|"|>,days:3}<tool_call|>'],
  [
    true,
    '<|tool_call>call:f{city:<|"|><|"|>}<tool_call|><|tool_call>call:f{city:<|"|>a<|"|>}<tool_call|> Done.',
  ],
  [
    true,
    '<|tool_call>call:f{city:<|"|>a<|"|>, unit: <|"|>C<|"|>,tags:[<|"|>a<|"|>, <|"|>b<|"|>]}<tool_call|>',
  ],
  [true, '<|tool_call>call:f{city:<|"|>a<|"|>,unit:null,<|"|>two words<|"|>:true}<tool_call|>'],
  [false, '<|tool_call>call:f{}<tool_call|>'],
  [false, '<|tool_call>call:f{"city":"Oslo"}<tool_call|>'],
  [false, '<|tool_call>call:f{city:Oslo}<tool_call|>'],
  [false, '<|tool_call>call:f{city:<|"|>Oslo<|"|>,days:8}<tool_call|>'],
  [false, '<|tool_call>call:f{city:<|"|>Oslo<|"|>,unit:<|"|>K<|"|>}<tool_call|>'],
  [false, '<|tool_call>call:f{city:<|"|>Oslo<|"|>,town:<|"|>Oslo<|"|>}<tool_call|>'],
  [false, '<|tool_call>call:f{city:<|"|>Oslo<|"|>,tags:[<|"|>A<|"|>]}<tool_call|>'],
  [false, '<|tool_call>call:g{}<tool_call|>'],
])('a free call with literals follows the schema of its tool: %j for %j', (expected, text) => {
  expect(new GbnfMatcher(grammarOf(weather)).matches(text)).toBe(expected)
})

test('a tool without declared parameters accepts any object with bare names', () => {
  const matcher = new GbnfMatcher(grammarOf({ type: 'object' }))

  expect(matcher.matches('<|tool_call>call:f{a:{b:[1,<|"|>x<|"|>,null]}}<tool_call|>')).toBe(true)
  expect(matcher.matches('<|tool_call>call:f{"a":1}<tool_call|>')).toBe(false)
})

test('calls sampled from the grammar of a random schema are parsed, and valid under the schema', () => {
  let compiled = 0
  fc.assert(
    fc.property(
      anySchema,
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      (value, numbers) => {
        const parameters = { type: 'object', properties: { value }, required: ['value'] }
        const grammar = compileOrSkip(parameters)
        if (grammar === undefined) return
        compiled++
        const validate = validator(value)
        const sampler = new GbnfSampler(grammar)
        for (let run = 0; run < 5; run++) {
          const answer = sampler.sample(() => numbers.next().value as number)
          for (const given of argumentsOf(answer)) {
            const about = `${answer} for ${JSON.stringify(value)}`
            expect([about, validate((JSON.parse(given) as { value: unknown }).value)]).toEqual([about, true])
          }
        }
      },
    ),
    { numRuns: 150, seed: 3 },
  )

  expect(compiled).toBeGreaterThan(80)
})

function compileOrSkip(parameters: object): string | undefined {
  try {
    return grammarOf(parameters, true)
  } catch (error) {
    if (LlmError.from(error).code !== 'invalid_request') throw error
    return undefined
  }
}

/** Returns the JSON arguments of the calls in an answer. */
function argumentsOf(answer: string): readonly string[] {
  const tools = [{ name: 'f', parameters: { type: 'object' } }]
  const parser = parseOutput({ template, family: 'gemma', prompt: '', reasoning: false, tools })
  const calls: string[] = []
  for (const part of [...parser.push(answer), ...parser.flush()]) {
    if (part.type === 'tool-call') calls[part.index] = ''
    if (part.type === 'tool-arguments') calls[part.index] += part.json
    expect(part.type, answer).not.toBe('tool-incomplete')
  }
  expect(calls.length, answer).toBeGreaterThan(0)
  return calls
}
