/** Replays answers of the built-in model. `RECORD=1 npx vitest run examples/express` records them again. */
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { type RecordingEngine, recordingEngine } from '@modelmount/core/testing'
import type { Express } from 'express'
import request from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

const file = fileURLToPath(new URL('answers.recording.json', import.meta.url))
const mode = process.env.RECORD ? 'record' : 'replay'
let engine: RecordingEngine
let llm: Llm
let app: Express

beforeAll(async () => {
  llm = await createLlm({
    models: emptyFolder(),
    engine: (local) => {
      engine = recordingEngine(local, file, { mode })
      return engine
    },
  })
  app = createApp(llm)
})

afterAll(() => llm.close())

test('the chat route answers', async () => {
  const { body } = await request(app)
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
    .expect(200)

  expect(body.choices[0].message.content).toBe('Hello! How can I help you?')
})

test('a route of the app asks the model', async () => {
  const { body } = await request(app).get('/api/users/2/story').expect(200)

  expect(body).toEqual({ user: 'Grace', story: expect.stringContaining('Grace') })
})

test('all recorded answers are used, without a loaded model', () => {
  expect(engine.unused()).toEqual([])
  expect(llm.loaded().map(({ processId }) => processId)).toEqual(
    mode === 'record' ? [expect.any(Number)] : [undefined],
  )
})
