/**
 * F-4: characters whose bytes are in several tokens arrived as replacement characters. Here the built-in model,
 * which has no token for these characters, has to write them, in every API.
 */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { post } from '../../support/served.ts'

const models = emptyFolder()
const words = '😀 漢字 👩‍👩‍👧‍👦 naïve ﷽ 🇯🇵'
const schema = { const: words }
const messages = [{ role: 'user', content: 'Hello' }]
const chat = { model: 'tiny', messages, max_tokens: 200, stream: true }

let llm: Llm
let server: Listening
beforeAll(async () => {
  llm = await createLlm({ models, local: { contextSize: 1_028 } })
  server = await listen(toNodeHandler(routesFor(), llm))
})
afterAll(async () => {
  await server.close()
  await llm.close()
})

/** The text of a stream, and the number of pieces that it came in. */
async function streamed(path: string, body: object, textOf: (frame: never) => unknown) {
  const response = await post(server.url + path, body)
  const frames = (await response.text())
    .split('\n')
    .map((line) => line.replace(/^data: /, ''))
    .filter((line) => line.startsWith('{'))
    .map((line) => textOf(JSON.parse(line) as never))
    .filter((text) => typeof text === 'string' && text !== '')
  return { text: frames.join(''), pieces: frames.length }
}

test.each<[name: string, path: string, body: object, textOf: (frame: never) => unknown]>([
  [
    'OpenAI',
    '/v1/chat/completions',
    { ...chat, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    ({ choices }: { choices: { delta: { content?: string } }[] }) => choices[0]?.delta.content,
  ],
  [
    'Anthropic',
    '/v1/messages',
    { ...chat, output_config: { format: { type: 'json_schema', schema } } },
    ({ delta }: { delta?: { text?: string } }) => delta?.text,
  ],
  [
    'Ollama',
    '/api/chat',
    { model: 'tiny', messages, format: schema, options: { num_predict: 200 } },
    ({ message }: { message?: { content?: string } }) => message?.content,
  ],
])(
  'in the API of %s, emoji and CJK characters arrive whole, each with its last token',
  async (_, ...call) => {
    const { text, pieces } = await streamed(...call)

    expect(text).not.toContain('\ufffd')
    expect(JSON.parse(text)).toBe(words)
    // More than one piece, so that the characters were split somewhere.
    expect(pieces).toBeGreaterThan(5)
  },
)
