/**
 * B-5: grammars, schemas and patterns of one caller ended the engine, and with it the answers of all others.
 * The inputs are those of the incidents: deep nesting, left recursion, an unknown directive, invalid types and
 * patterns, references without an end.
 */

import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { post } from '../../support/served.ts'

const models = emptyFolder()
let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ models, local: { contextSize: 1_026 } })
  server = await listen(toNodeHandler(routesFor(), llm))
  await llm.chat('Hello', { model: 'tiny', maxTokens: 1 })
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

const nested = (count: number, open: string, inner: string, close: string): string =>
  `${open.repeat(count)}${inner}${close.repeat(count)}`
const withSchema = (schema: unknown): object => ({
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
})

const inputs: Readonly<Record<string, object>> = {
  'groups 20,000 levels deep': { grammar: `root ::= ${nested(20_000, '(', '"a"', ')')}` },
  'repeated groups of groups': { grammar: `root ::= ${nested(40, '(', '"a"', '*)*')}` },
  'a left-recursive rule': { grammar: 'root ::= root "a" | "b"' },
  'two rules that begin with each other': { grammar: 'root ::= a "x"\na ::= root "y"' },
  'an endless repetition of nothing': { grammar: 'root ::= (""*)*' },
  'a directive of another grammar engine': { grammar: '%llguidance {}\nstart: "a"' },
  'an undefined rule': { grammar: 'root ::= missing' },
  'an unclosed string': { grammar: 'root ::= "a' },
  'a repetition of two billion': { grammar: 'root ::= "a"{2000000000}' },
  'an unknown type': withSchema({ type: 'nope' }),
  'a type that is a number': withSchema({ type: 5 }),
  'properties that are a list': withSchema({ type: 'object', properties: [] }),
  'a reference to itself': withSchema({ $ref: '#' }),
  'references in a circle': withSchema({
    $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
    $ref: '#/$defs/a',
  }),
  'a reference to a file': withSchema({ $ref: 'file:///etc/passwd' }),
  'an invalid pattern': withSchema({ type: 'string', pattern: '(' }),
  'an exponential pattern': withSchema({ type: 'string', pattern: '^(a|b)*a(a|b){60}$' }),
  'a pattern of nested repetitions': withSchema({ type: 'string', pattern: '^(((a{1000}){1000}){1000})$' }),
  'a schema 100 levels deep without a value': withSchema(
    JSON.parse(nested(100, '{"type":"array","minItems":1,"items":', 'false', '}')),
  ),
  'a tool whose parameters are a string': {
    tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }],
    tool_choice: 'required',
  },
}

test('each of them gets a 400, while a stream of another caller goes on in the same process', async () => {
  const [{ processId } = {}] = llm.loaded()
  const others = new AbortController()
  let pieces = 0
  const input = { kind: 'text' as const, prompt: ['Tell me a story.'] }
  const reading = (async () => {
    while (!others.signal.aborted)
      for await (const { type } of await llm.generate(
        { model: 'tiny', input, maxTokens: 300, sampling: { ignoreEos: true } },
        { signal: others.signal, stream: true },
      ))
        if (type === 'text') pieces++
  })()
  const chat = { model: 'tiny', max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }] }

  for (const [what, fields] of Object.entries(inputs)) {
    const response = await post(`${server.url}/v1/chat/completions`, { ...chat, ...fields })
    expect([what, response.status]).toEqual([what, 400])
    expect(await response.json()).toMatchObject({ error: { message: expect.stringMatching(/./) } })
  }
  const seen = pieces
  await expect.poll(() => pieces).toBeGreaterThan(seen)
  others.abort()
  await reading

  expect(llm.loaded()).toMatchObject([{ state: 'ready', processId }])
  expect((await post(`${server.url}/v1/chat/completions`, chat)).status).toBe(200)
}, 60_000)
