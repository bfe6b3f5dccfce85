/** Searches and answers with real models: random ones for the index, and the built-in one or a script for the answers. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'
import { PassageIndex, splitIntoPassages } from './index.js'
import { writeModels } from './random-models.js'

const chat = { chat: 'tiny' }
let folder
let llm
let index
let app

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retrieval-'))
  const models = writeModels(folder)
  llm = await createLlm({ models: folder })
  index = new PassageIndex(llm, models)
  await index.addFolder(join(import.meta.dirname, 'documents'))
  app = createApp(llm, index, chat)
}, 60_000)

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

test('a document becomes passages with its title', () => {
  expect(splitIntoPassages('# Returns\n\nWithin 30 days.\n\n\nNot lamps.\n')).toEqual([
    'Returns: Within 30 days.',
    'Returns: Not lamps.',
  ])
})

test('a search returns the best passages of the reranking model, with their sources', async () => {
  const question = 'How long does a parcel to Norway take?'

  const { body } = await request(app).post('/search').send({ question }).expect(200)

  expect(body.passages).toHaveLength(3)
  const scores = body.passages.map(({ score }) => score)
  expect(scores).toEqual([...scores].sort((a, b) => b - a))
  expect(scores.every((score) => score > 0 && score < 1)).toBe(true)
  expect(body.passages.every(({ source }) => /^(opening-hours|returns|shipping)\.md$/.test(source))).toBe(
    true,
  )
  const reranked = await llm.rerank({
    model: 'random-rerank',
    query: question,
    documents: body.passages.map(({ passage }) => passage),
  })
  reranked.scores.forEach((score, position) => {
    expect(score).toBeCloseTo(scores[position], 4)
  })
})

test('embeddings find the passage with the words of the question', async () => {
  const passages = splitIntoPassages('A parcel to Norway takes five days.\n\nzzz qqq xxx\n\n12345 67890')
  const { embeddings } = await llm.embed(passages, { model: 'random-embed' })
  const { embedding } = await llm.embed('Norway parcel takes five days', { model: 'random-embed' })
  const similarity = embeddings.map((vector) =>
    vector.reduce((sum, value, at) => sum + value * embedding[at], 0),
  )

  expect(similarity.indexOf(Math.max(...similarity))).toBe(0)
})

test('a new version of a document replaces its passages', async () => {
  const size = index.size

  await index.add('news.md', '# News\n\nFirst.\n\nSecond.')
  await index.add('news.md', '# News\n\nThird.')

  expect(index.size).toBe(size + 1)
})

test('the built-in model answers', async () => {
  const { body } = await request(app)
    .post('/answers')
    .send({ question: 'When is the shop open?' })
    .expect(200)

  expect(body.answer).not.toBe('')
  expect(body.passages).toHaveLength(3)
}, 30_000)

test.each([{}, { question: ' ' }, { question: 'x'.repeat(1_001) }])(
  'a wrong question is 400',
  async (body) => {
    await request(app).post('/search').send(body).expect(400)
    await request(app).post('/answers').send(body).expect(400)
  },
)

describe('with a script for the answer', () => {
  test('the model gets the passages, numbered', async () => {
    const engine = scriptedEngine('Five days.')
    const scripted = await createLlm({ engine })
    onTestFinished(() => scripted.close())

    const { body } = await request(createApp(scripted, index, chat))
      .post('/answers')
      .send({ question: 'How long does a parcel to Norway take?' })
      .expect(200)

    expect(body.answer).toBe('Five days.')
    const prompt = JSON.stringify(engine.requests[0].input)
    for (const [number, { passage }] of body.passages.entries())
      expect(prompt).toContain(`[${number + 1}] ${passage}`)
  })

  test('the model stops when a client disconnects', async () => {
    const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
    const scripted = await createLlm({ engine })
    const server = createApp(scripted, index, chat).listen(0, '127.0.0.1')
    onTestFinished(async () => {
      server.close()
      await scripted.close()
    })
    await once(server, 'listening')
    const client = new AbortController()
    const answer = fetch(`http://127.0.0.1:${server.address().port}/answers`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ question: 'When is the shop open?' }),
      signal: client.signal,
    })
    await expect.poll(() => engine.running, { timeout: 5_000 }).toBe(1)

    client.abort()

    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => engine.running).toBe(0)
  })
})
