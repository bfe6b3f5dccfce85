/** Random requests for completions and embeddings. Each gets a result, or a 400 in the error envelope. */
import { createLlm, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import { anyBytes, anyJson, asJson, list, mostly, numbers, object, oneOf, text, type Values } from './json.ts'

/** A scripted engine that does not record requests. */
const { generate: _, ...others } = scriptedEngine('')
const engine: Engine = {
  ...others,
  generate: (request, call) => scriptedEngine(' upon a time').generate(request, call),
}
const llm = await createLlm({ engine, models: emptyFolder() })
let server: Listening

beforeAll(async () => {
  server = await listen(toNodeHandler(routesFor(), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

const tokens = asJson(fc.array(fc.nat(60_000), { minLength: 1, maxLength: 5 }))
const inputs = fc.oneof(text, tokens, list(fc.oneof(text, tokens)))

const completions: Values = {
  max_tokens: asJson(fc.integer({ min: 0, max: 20 })),
  stream: asJson(fc.boolean()),
  stream_options: asJson(fc.record({ include_usage: fc.boolean() }, { requiredKeys: [] })),
  temperature: numbers(0, 2),
  stop: fc.oneof(text, list(text)),
  suffix: text,
  echo: asJson(fc.boolean()),
  logprobs: asJson(fc.nat(5)),
  grammar: text,
  best_of: fc.constant('1'),
}
const embeddings: Values = {
  dimensions: asJson(fc.integer({ min: 1, max: 8 })),
  encoding_format: fc.constantFrom('"float"', '"base64"'),
  user: text,
}

test.each([
  ['completions', 'prompt', completions, /"object":"text_completion"/],
  ['embeddings', 'input', embeddings, /^\{"object":"list"/],
] as const)(
  'each of 2,000 random requests for %s gets a result or an error',
  async (path, field, fields, found) => {
    let answered = 0
    const almostValid = fc
      .tuple(mostly(fc.constant('"tiny"')), mostly(inputs), fc.array(oneOf(fields, 10), { maxLength: 4 }))
      .map(([model, input, more]) => object([...Object.entries({ model, [field]: input }), ...more]))

    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 8, arbitrary: almostValid }, anyJson({ ...fields, [field]: inputs }), anyBytes),
        async (body) => {
          const response = await fetch(`${server.url}/v1/${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: body as string | Uint8Array<ArrayBuffer>,
          })
          const text = await response.text()
          if (response.status === 200) {
            answered++
            expect(text).toMatch(found)
          } else {
            expect(response.status, text).toBe(400)
            expect(JSON.parse(text)).toMatchObject({
              error: { type: 'invalid_request_error', message: expect.stringMatching(/./) },
            })
          }
        },
      ),
      { numRuns: 2_000 },
    )

    expect(answered).toBeGreaterThan(400)
  },
)
