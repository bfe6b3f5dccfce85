import { modelPath } from '@modelmount/tiny-model'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { noiseModel } from '../../../../test/support/models.ts'
import type { Message } from '../engine/request.ts'
import { readGguf } from '../models/gguf/gguf.ts'
import { parseChatTemplate } from './jinja.ts'
import { hasControlTokens, parseOutput } from './output.ts'
import type { OutputPart } from './output-part.ts'
import { detectFamily } from './tool-calls/detect.ts'
import { fixtureFamilies } from './tool-calls/fixtures/families.ts'
import { type Fixture, type FixtureFamily, tools } from './tool-calls/fixtures/fixture.ts'

const fixtures = fixtureFamilies.flatMap((family) =>
  family.fixtures.map((fixture) => [family.name, fixture.name, family, fixture] as const),
)

/**
 * Parses pieces of an output and joins adjacent parts, because the boundaries of parts depend on the pieces.
 */
function parse(
  { template }: Pick<FixtureFamily, 'template'>,
  pieces: readonly string[],
  { prompt = '', reasoning = true }: { prompt?: string; reasoning?: boolean } = {},
): readonly OutputPart[] {
  const parser = parseOutput({ template, family: detectFamily(template), prompt, reasoning, tools })
  return joined([...pieces.flatMap((piece) => parser.push(piece)), ...parser.flush()])
}

function joined(all: readonly OutputPart[]): readonly OutputPart[] {
  const whole: OutputPart[] = []
  for (const part of all) {
    const last = whole.at(-1)
    if ('text' in part && last?.type === part.type)
      whole.splice(-1, 1, { type: part.type, text: last.text + part.text })
    else if (part.type === 'tool-arguments' && last?.type === 'tool-arguments' && last.index === part.index)
      whole.splice(-1, 1, { ...last, json: last.json + part.json })
    else whole.push(part)
  }
  return whole
}

function cutAt(text: string, cuts: readonly number[]): readonly string[] {
  const at = [0, ...[...cuts].sort((a, b) => a - b), text.length]
  return at.slice(1).map((end, index) => text.slice(at[index], end))
}

test.each(fixtures)('%s: %s', (_family, _name, family, fixture) => {
  expect(parse(family, [fixture.answer], fixture)).toEqual(fixture.parts)
})

test.each(fixtures)('%s: %s, however the text is split', (_family, _name, family, fixture) => {
  const expected = JSON.stringify(fixture.parts)
  // Compares without `expect` first, because `expect` is slow for thousands of comparisons.
  const check = (pieces: readonly string[]): void => {
    const parts = parse(family, pieces, fixture)
    if (JSON.stringify(parts) !== expected)
      expect({ pieces, parts }).toEqual({ pieces, parts: fixture.parts })
  }

  for (let at = 1; at < fixture.answer.length; at++) check(cutAt(fixture.answer, [at]))
  check(fixture.answer.split(''))
  fc.assert(
    fc.property(fc.array(fc.nat({ max: fixture.answer.length }), { maxLength: 40 }), (cuts) => {
      check(cutAt(fixture.answer, cuts))
    }),
    { numRuns: 30 },
  )
})

test.each(fixtureFamilies.map((family) => [family.name, family] as const))(
  '%s has at least five fixtures',
  (_, family) => {
    expect(family.fixtures.length).toBeGreaterThanOrEqual(5)
  },
)

/** Fragments of call markup, without complete tool names. */
const fragments = [
  '<tool_call>',
  '</tool_call>',
  '<|tool_call|>',
  '<|tool_call>call:',
  '<tool_call|>',
  '<|python_tag|>',
  '[TOOL_CALLS]',
  '[ARGS]',
  '<｜tool▁calls▁begin｜>',
  '<｜tool▁call▁begin｜>',
  '<｜tool▁sep｜>',
  '<｜DSML｜invoke name="',
  '<function=',
  '<parameter=',
  '<arg_key>',
  '<|tool_calls_section_begin|>',
  '<|tool_call_begin|>functions.',
  '<|open|>call tool="',
  '<minimax:tool_call>',
  '<invoke name="',
  ']<]minimax[>[<invoke name="',
  '<|function_call|>',
  '<|tools_prefix|>',
  '<function name="',
  '<|tool_call_start|>',
  '<|tool_call:begin|>',
  '<atem:invoke name="',
  '>>>',
  '{"name": "',
  '"arguments": {',
  '"get',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  '\n',
  ' ',
  '```json\n',
  'a',
  '<',
]

describe.each(fixtureFamilies.map((family) => [family.name, family] as const))('%s', (name, family) => {
  test('text without calls is unchanged', () => {
    const words = fc.array(fc.oneof(fc.constantFrom(...fragments), fc.string({ unit: 'binary' })), {
      maxLength: 30,
    })

    fc.assert(
      fc.property(words, (pieces) => {
        const answer = pieces.join('')
        const expected = answer === '' ? [] : [{ type: 'text', text: answer }]
        expect(parse(family, pieces, { reasoning: false })).toEqual(expected)
      }),
    )
  })

  test('the argument deltas of a call join to its arguments', () => {
    const values = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 5 })

    fc.assert(
      fc.property(values, fc.array(fc.nat({ max: 400 }), { maxLength: 20 }), (value, cuts) => {
        // Formats with one tag per parameter cannot escape `<` and `>`. MiniMax-M3 writes names as tags.
        fc.pre(!/[<>]/.test(JSON.stringify(value)) && !Object.keys(value).some((key) => key.startsWith('/')))
        const { answer, prompt } = callOf(name, value)
        const parts = parse(
          family,
          cutAt(
            answer,
            cuts.map((at) => Math.min(at, answer.length)),
          ),
          {
            ...(prompt && { prompt }),
          },
        )
        expect(parts.map(({ type }) => type)).toEqual(['tool-call', 'tool-arguments'])
        const [, args] = parts
        expect(JSON.parse(args?.type === 'tool-arguments' ? args.json : '')).toEqual(
          JSON.parse(JSON.stringify(value)),
        )
      }),
    )
  })

  test('parsing time is linear in the text', () => {
    /** CPU time in ms. Elapsed time would include that of other processes. */
    const cost = (length: number): number => {
      const before = process.cpuUsage()
      for (const trap of trapsOf(name, length)) {
        const parser = parseOutput({
          template: family.template,
          family: name,
          prompt: '',
          reasoning: true,
          tools,
        })
        for (let at = 0; at < trap.length; at += 3) parser.push(trap.slice(at, at + 3))
        parser.flush()
      }
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000
    }
    cost(5_000)

    let [short, long] = [cost(40_000), cost(160_000)]
    // A quadratic parser would take sixteen times as long.
    const isLinear = (): boolean => long < 9 * short + 50
    // Garbage collection or another test of this process can only add to a cost: the least cost is the true one.
    for (let round = 0; round < 4 && !isLinear(); round++) {
      short = Math.min(short, cost(40_000))
      long = Math.min(long, cost(160_000))
    }

    expect(isLinear(), `${long} ms, against ${short} ms for a quarter`).toBe(true)
  })
})

/** Long ambiguous texts, and a long text of call fragments. */
const trapsOf = (name: FixtureFamily['name'], length: number): readonly string[] => [
  ' '.repeat(length),
  callOf(name, { text: 'a'.repeat(length) }).answer,
  `<tool_call>{"arguments": {"a": "${'a'.repeat(length)}`,
  `{"arguments": {"a": [${'0, '.repeat(length / 3)}`,
  fragments.join('').repeat(length / 400),
]

/** A call of `docs/find` in the format of the family. */
function callOf(name: FixtureFamily['name'], value: object): { answer: string; prompt?: string } {
  const json = JSON.stringify(value)
  const members = Object.entries(value).map(([key, one]) => [key, JSON.stringify(one)])
  switch (name) {
    case 'hermes':
    case 'granite':
      return { answer: `<tool_call>\n{"name": "docs/find", "arguments": ${json}}\n</tool_call>` }
    case 'llama3':
      return { answer: `{"name": "docs/find", "parameters": ${JSON.stringify(json)}}` }
    case 'generic':
      return { answer: `{"arguments": ${json}, "name": "docs/find"}` }
    case 'mistral':
      return { answer: `[TOOL_CALLS]docs/find[ARGS]${json}` }
    case 'deepseek':
      return {
        answer: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>docs/find<｜tool▁sep｜>${json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
      }
    case 'harmony':
      return {
        answer: `<|channel|>commentary to=functions.docs/find <|constrain|>json<|message|>${json}<|call|>`,
      }
    case 'kimi':
      return {
        answer: `<|tool_calls_section_begin|><|tool_call_begin|>functions.docs/find:0<|tool_call_argument_begin|>${json}<|tool_call_end|><|tool_calls_section_end|>`,
      }
    case 'kimi-k3': {
      const values = members.map(
        ([key, text]) => `<|open|>argument key="${key}" type="object"<|sep|>${text}<|close|>argument<|sep|>`,
      )
      return {
        answer: `<|open|>call tool="docs/find" index="1"<|sep|>${values.join('')}<|close|>call<|sep|>`,
      }
    }
    case 'minimax': {
      const parameters = members.map(([key, text]) => `<parameter name="${key}">${text}</parameter>\n`)
      return {
        answer: `<minimax:tool_call>\n<invoke name="docs/find">\n${parameters.join('')}</invoke>\n</minimax:tool_call>`,
      }
    }
    case 'minimax-m3': {
      const tags = members.map(([key, text]) => `~<${key}>${text}~</${key}>`)
      const answer = `~<tool_call>\n~<invoke name="docs/find">${tags.join('')}~</invoke>\n~</tool_call>`
      return { answer: answer.replaceAll(/~(?=<)/g, ']<]minimax[>[') }
    }
    case 'gigachat':
      return { answer: `<|function_call|>{"name": "docs/find", "arguments": ${json}}` }
    case 'apertus':
      return { answer: `<|tools_prefix|>[{"docs/find": ${json}}]<|tools_suffix|>` }
    case 'minicpm': {
      const parameters = members.map(([key, text]) => `<param name="${key}">${text}</param>`)
      return { answer: `<function name="docs/find">${parameters.join('')}</function>` }
    }
    case 'lfm2': {
      const values = members.map(([key, text]) => `${JSON.stringify(key)}=${text}`)
      return { answer: `<|tool_call_start|>[docs/find(${values.join(', ')})]<|tool_call_end|>` }
    }
    case 'solar':
      return {
        answer: `<|tool_calls|><|tool_call:begin|>a<|tool_call:name|>docs/find<|tool_call:args|>${json}<|tool_call:end|>`,
      }
    case 'muse': {
      const parameters = members.map(
        ([key, text]) => `<atem:parameter name="${key}">${text}</atem:parameter>\n`,
      )
      return {
        answer: `<atem:function_calls>\n<atem:invoke name="docs/find">\n${parameters.join('')}</atem:invoke>\n</atem:function_calls>`,
      }
    }
    case 'functionary':
      return { answer: `docs/find\n${json}`, prompt: '>>>' }
    case 'gemma':
      return { answer: `<|tool_call>call:docs/find${gemmaText(value)}<tool_call|>` }
    case 'qwen-coder': {
      const parameters = members.map(([key, text]) => `<parameter=${key}>\n${text}\n</parameter>\n`)
      return { answer: `<tool_call>\n<function=docs/find>\n${parameters.join('')}</function>\n</tool_call>` }
    }
    case 'glm': {
      const pairs = members.map(
        ([key, text]) => `<arg_key>${key}</arg_key>\n<arg_value>${text}</arg_value>\n`,
      )
      return { answer: `<tool_call>docs/find\n${pairs.join('')}</tool_call>` }
    }
  }
}

function gemmaText(value: unknown): string {
  if (typeof value === 'string') return `<|"|>${value}<|"|>`
  if (Array.isArray(value)) return `[${value.map(gemmaText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, one]) => `<|"|>${key}<|"|>:${gemmaText(one)}`)
    .join(',')}}`
}

test.each([modelPath, noiseModel])('calls rendered by the template in %s parse back', async (path) => {
  const { metadata } = await readGguf(path)
  const source = String(metadata['tokenizer.chat_template'])
  const template = { source, bosToken: '', eosToken: '' }
  const json = '{"city": "\\"Köln\\"\\n</tool_call>", "days": 3, "units": null}'
  const asked: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'Rain?' }] }]
  const answer: Message = {
    role: 'assistant',
    content: [
      { type: 'tool-call', id: 'a', name: 'get_weather', arguments: json },
      { type: 'tool-call', id: 'b', name: 'get_time', arguments: '{}' },
    ],
  }

  const prompt = parseChatTemplate(template)(asked, { tools })
  const answered = parseChatTemplate(template)([...asked, answer], { tools })

  const written = answered.slice(prompt.length, answered.lastIndexOf('<|im_end|>'))
  expect(answered.startsWith(prompt)).toBe(true)
  expect(parse({ template: source }, [...written], { prompt })).toEqual([
    { type: 'tool-call', index: 0, name: 'get_weather' },
    { type: 'tool-arguments', index: 0, json },
    { type: 'tool-call', index: 1, name: 'get_time' },
    { type: 'tool-arguments', index: 1, json: '{}' },
  ])
})

const hermes = fixtureFamilies.find(({ name }) => name === 'hermes') as FixtureFamily

test('text that cannot start a call is emitted immediately', () => {
  const parser = parseOutput({
    template: hermes.template,
    family: 'hermes',
    prompt: '',
    reasoning: false,
    tools,
  })

  expect(parser.push('Hello')).toEqual([{ type: 'text', text: 'Hello' }])
  expect(parser.push(', <tool')).toEqual([{ type: 'text', text: ',' }])
  expect(parser.push('s> ')).toEqual([{ type: 'text', text: ' <tools>' }])
  expect(parser.push('<tool_call>{"name": "get_')).toEqual([])
  expect(parser.push('me')).toEqual([{ type: 'text', text: ' <tool_call>{"name": "get_me' }])
})

test('arguments are emitted as they arrive', () => {
  const parser = parseOutput({
    template: hermes.template,
    family: 'hermes',
    prompt: '',
    reasoning: false,
    tools,
  })

  expect(parser.push('<tool_call>{"name": "get_time"')).toEqual([])
  expect(parser.push(', "arguments": {"a')).toEqual([
    { type: 'tool-call', index: 0, name: 'get_time' },
    { type: 'tool-arguments', index: 0, json: '{"a' },
  ])
  expect(parser.push('": 1')).toEqual([{ type: 'tool-arguments', index: 0, json: '": 1' }])
})

test('without tools, calls are text', () => {
  const { answer } = hermes.fixtures[0] as Fixture
  const parser = parseOutput({
    template: hermes.template,
    family: 'hermes',
    prompt: '',
    reasoning: true,
    tools: [],
  })

  expect(joined([...parser.push(answer), ...parser.flush()])).toEqual([{ type: 'text', text: answer }])
})

test('if reasoning is false, reasoning tags are text', () => {
  expect(parse(hermes, ['<think>a</think>b'], { reasoning: false })).toEqual([
    { type: 'text', text: '<think>a</think>b' },
  ])
})

test.each([
  [false, { template: hermes.template, reasoning: true, tools: [] }],
  [true, { template: hermes.template, reasoning: false, tools }],
  [true, { template: '<|channel|>analysis<|message|>', reasoning: false, tools: [] }],
  [true, { template: '[THINK][/THINK]', reasoning: true, tools: [] }],
  [false, { template: '[THINK][/THINK]', reasoning: false, tools: [] }],
])('hasControlTokens is %j for %j', (expected, fields) => {
  expect(hasControlTokens({ ...fields, family: detectFamily(fields.template), prompt: '' })).toBe(expected)
})
