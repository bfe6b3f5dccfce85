import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import { GbnfSampler } from '../../../../test/support/gbnf-sampler.ts'
import type { Tool } from '../engine/request.ts'
import { buildOutputGrammar } from '../grammar/output-grammar.ts'
import { type ExpectedOutput, parseOutput } from './output.ts'
import { buildOutputConstraint } from './output-constraint.ts'
import { selectTaggedFormat } from './tool-calls/call-formats.ts'
import { detectFamily } from './tool-calls/detect.ts'
import { fixtureFamilies } from './tool-calls/fixtures/families.ts'
import { tools as known } from './tool-calls/fixtures/fixture.ts'

const tools: readonly Tool[] = [
  { name: 'get_time', parameters: { type: 'object', properties: {}, additionalProperties: false } },
  {
    name: 'get-weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 8 },
        days: { type: 'array', items: { enum: [1, 2, 'all'] }, maxItems: 3 },
      },
      required: ['city'],
      additionalProperties: false,
    },
  },
]
const numbers = fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))

function grammarFor(expected: ExpectedOutput): string | undefined {
  const input = {
    kind: 'chat' as const,
    messages: [],
    tools: expected.tools,
    toolChoice: { mode: expected.isConstrained ? ('required' as const) : ('auto' as const) },
  }
  const constraint = buildOutputConstraint(
    { input, ...(expected.reasoning && { reasoning: true }) },
    expected,
  )
  return constraint && buildOutputGrammar(constraint)
}

const prompts = [
  ...new Set(fixtureFamilies.flatMap(({ fixtures }) => fixtures.map(({ prompt = '' }) => prompt))),
]
const situations = fixtureFamilies.flatMap(({ name, template }) =>
  prompts.map((prompt) => [name, prompt, template] as const),
)

test.each(situations)(
  '%s, prompt %j: samples of required calls parse as complete calls',
  (_name, prompt, template) => {
    const expected = {
      ...{ template, prompt, tools },
      ...{ family: detectFamily(template), reasoning: true, isConstrained: true },
    }
    const grammar = grammarFor(expected)

    expect(grammar).toBeDefined()
    fc.assert(
      fc.property(numbers, (random) => {
        const answer = new GbnfSampler(grammar ?? '').sample(() => random.next().value as number)
        const parser = parseOutput(expected)
        const parts = [...parser.push(answer), ...parser.flush()]
        const calls = parts.flatMap((one) => (one.type === 'tool-call' ? [one] : []))
        const about = JSON.stringify({ answer, parts })

        expect(calls.length, about).toBeGreaterThan(0)
        expect(
          parts.filter(({ type }) => type === 'tool-incomplete' || type === 'text'),
          about,
        ).toEqual([])
        for (const { index, name } of calls) {
          const json = parts.map((one) =>
            one.type === 'tool-arguments' && one.index === index ? one.json : '',
          )
          const value = JSON.parse(json.join(''))
          expect(
            name === 'get_time' ? Object.keys(value).length === 0 : typeof value.city === 'string',
            about,
          ).toBe(true)
        }
      }),
      { numRuns: 20 },
    )
  },
)

test.each(
  fixtureFamilies.flatMap(({ name, template }) => {
    const format = selectTaggedFormat({ family: name, template })
    return format ? [[name, template, format] as const] : []
  }),
)(
  '%s: samples of calls with tags parse as complete calls that follow their schema',
  (family, template, format) => {
    const schema = { type: 'object', properties: { city: { type: 'string' }, days: { enum: [1, 2] } } }
    const weather = { name: 'get-weather', parameters: { ...schema, required: ['city'] } }
    const calls = { tools: [weather], format, isRequired: true, isParallel: true }
    const sampler = new GbnfSampler(buildOutputGrammar({ calls }) ?? '')

    fc.assert(
      fc.property(numbers, (random) => {
        const answer = sampler.sample(() => random.next().value as number)
        const parser = parseOutput({ template, family, prompt: '', reasoning: false, tools: [weather] })
        const parts = [...parser.push(answer), ...parser.flush()]
        const values = new Map<number, string>()
        for (const part of parts)
          if (part.type === 'tool-arguments')
            values.set(part.index, (values.get(part.index) ?? '') + part.json)

        expect(values.size, answer).toBeGreaterThan(0)
        expect(parts.filter(({ type }) => type === 'text' || type === 'tool-incomplete')).toEqual([])
        for (const json of values.values()) {
          const { city, days = 1 } = JSON.parse(json) as { city: unknown; days?: unknown }
          expect([typeof city, days === 1 || days === 2], answer).toEqual(['string', true])
        }
      }),
      { numRuns: 50 },
    )
  },
)

/** Fixtures that parsers accept and grammars reject. Each fixture template covers one version of a model. */
const notEnforced: ReadonlySet<string> = new Set([
  'hermes: arguments before the name',
  'hermes: an object given as a string',
  'hermes: a name with special characters that is a prefix of another',
  'hermes: a call with a cut-off closing tag is complete',
  'hermes: a call without arguments',
  'hermes: unescaped line breaks and backslashes',
  'hermes: the nested function object of OpenAI’s API',
  'mistral: one call in a list',
  'mistral: two calls in a list',
  'mistral: a name and arguments',
  'mistral: a name, an id and arguments, twice',
  'mistral: no separator between name and arguments',
  'mistral: an object given as a string',
  'mistral: reasoning first',
  'deepseek: the format of R1',
  'deepseek: two calls of R1 after reasoning that the prompt opens',
  'functionary: a call with a cut-off closing tag is complete',
  'granite: two calls in a list',
  'granite: an object given as a string',
  'qwen-coder: numbers that the schema types as strings, and Python literals',
  'glm: unescaped strings',
  'gemma: nested objects and lists',
  'gemma: an unquoted word is a string',
  'apertus: a call without a list',
  'apertus: a second call of an unknown tool is text',
])

const whole = fixtureFamilies.flatMap(({ name, template, fixtures }) =>
  fixtures
    .filter(({ parts }) => parts.some(({ type }) => type === 'tool-call'))
    .filter(({ parts }) => parts.every(({ type }) => type !== 'tool-incomplete'))
    .map((fixture) => [`${name}: ${fixture.name}`, template, fixture] as const),
)

test.each(whole)(
  '%s: the grammar without a required call accepts the enforced format',
  (name, template, { prompt = '', answer }) => {
    const grammar = grammarFor({
      ...{ template, prompt, tools: known },
      ...{ family: detectFamily(template), reasoning: true },
    })

    const isTaken = grammar === undefined || new GbnfMatcher(grammar).matches(answer)

    expect(isTaken).toBe(!notEnforced.has(name))
  },
)
