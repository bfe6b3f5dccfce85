/** Tests the route handlers without Next.js. A script answers instead of a model. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

const engine = scriptedEngine(
  ({ input }) =>
    JSON.stringify(input.messages).includes('Endless') ? 'word '.repeat(10_000) : ['Ada ', 'went home.'],
  { delayMs: 2 },
)
const cookie = 'session=ada'
let llm
let story
let models

beforeAll(async () => {
  globalThis.llm = createLlm({ auth: 'host', engine })
  llm = await globalThis.llm
  story = await import('./app/api/story/route.js')
  models = await import('./app/llm/[...path]/route.js')
})

afterAll(() => llm.close())

const ask = (about, init = {}) =>
  story.GET(new Request(`http://localhost/api/story?about=${about}`, { headers: { cookie }, ...init }))

test('the route of the app streams a story', async () => {
  const response = await ask('Ada')

  expect(response.status).toBe(200)
  expect(await response.text()).toBe('Ada went home.')
})

test('only users get a story, and only about a name', async () => {
  const anonymous = await ask('Ada', { headers: {} })
  const wrong = await ask('1; 2')

  expect(anonymous.status).toBe(401)
  expect(wrong.status).toBe(400)
})

test('the routes of models answer users', async () => {
  const chat = (headers) =>
    models.POST(
      new Request('http://localhost/llm/v1/chat/completions', {
        method: 'POST',
        headers,
        body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }),
      }),
    )

  const { choices } = await (await chat({ cookie })).json()

  expect(choices[0].message.content).toBe('Ada went home.')
  expect((await chat({})).status).toBe(401)
})

test.each(['disconnects', 'reads no further'])('the model stops when a client %s', async (how) => {
  const client = new AbortController()
  const { body } = await ask('Endless', { signal: client.signal })
  const reader = body.getReader()
  await reader.read()
  expect(engine.running).toBe(1)

  if (how === 'disconnects') client.abort()
  else await reader.cancel()

  await expect.poll(() => engine.running).toBe(0)
})
