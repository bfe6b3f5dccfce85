/** Extracts orders with the built-in model, and with scripted answers. */
import { once } from 'node:events'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'
import { extractOrder, order } from './extraction.js'

const text = 'Ada here. Please send three lamps and a chair by 2 March 2027, it is urgent!'
const lamps = { product: 'lamp', quantity: 3 }
const answer = (...items) =>
  JSON.stringify({ customer: 'Ada', isUrgent: true, deliverOn: '2027-03-02', items })

async function start(engine) {
  const llm = await createLlm(engine && { engine })
  onTestFinished(() => llm.close())
  return llm
}

test('the built-in model answers with an object of the schema', async () => {
  const app = createApp(await start())

  const { body } = await request(app).post('/orders').send({ text }).expect(200)

  expect(order.safeParse({ ...body, deliverOn: body.deliverOn.slice(0, 10) }).success).toBe(true)
}, 30_000)

test('code gets typed values, such as a Date', async () => {
  const llm = await start(scriptedEngine(answer(lamps, { product: 'chair', quantity: 1 })))

  expect(await extractOrder(llm, text)).toEqual({
    customer: 'Ada',
    isUrgent: true,
    deliverOn: new Date('2027-03-02'),
    items: [lamps, { product: 'chair', quantity: 1 }],
  })
})

test('the model gets a second attempt, and learns what was wrong', async () => {
  const engine = scriptedEngine(({ input }) =>
    input.messages.length > 2 ? answer(lamps) : answer(lamps, lamps),
  )
  const app = createApp(await start(engine))

  const { body } = await request(app).post('/orders').send({ text }).expect(200)

  expect(body.items).toEqual([lamps])
  expect(JSON.stringify(engine.requests[1].input.messages)).toContain('has a product twice')
})

test('an answer that breaks a rule twice is 422, and says which', async () => {
  const app = createApp(await start(scriptedEngine(answer(lamps, lamps))))

  const { body } = await request(app).post('/orders').send({ text }).expect(422)

  expect(body).toEqual({
    error: 'no valid order',
    issues: [expect.objectContaining({ message: 'has a product twice' })],
  })
})

test.each([{}, { text: '' }, { text: 7 }, { text: 'x'.repeat(4_001) }])(
  'a body with a wrong text is 400',
  async (wrong) => {
    const engine = scriptedEngine(answer(lamps))

    await request(createApp(await start(engine)))
      .post('/orders')
      .send(wrong)
      .expect(400)

    expect(engine.requests).toEqual([])
  },
)

test('the model stops when a client disconnects', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const server = createApp(await start(engine)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = new AbortController()
  const response = fetch(`http://127.0.0.1:${server.address().port}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
    signal: client.signal,
  })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(response).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
