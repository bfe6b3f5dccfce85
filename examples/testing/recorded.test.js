/**
 * Vitest and supertest, with recorded answers of a real model. `RECORD=1 npm run test:vitest` records them again; without
 * it, no model is loaded.
 */
import { createLlm } from '@modelmount/core'
import { recordingEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from './app.js'

const file = `${import.meta.dirname}/answers.recording.json`
const mode = process.env.RECORD ? 'record' : 'replay'
let engine
let llm

beforeAll(async () => {
  llm = await createLlm({
    engine: (local) => {
      engine = recordingEngine(local, file, { mode })
      return engine
    },
  })
})

afterAll(() => llm.close())

test('a story of the real model is about the given person', async () => {
  const { body } = await request(createApp(llm)).get('/stories/Grace').expect(200)

  expect(body.story).toContain('Grace')
})

test('all recorded answers are used, and a replay loads no model', () => {
  expect(engine.unused()).toEqual([])
  expect(llm.loaded().some(({ processId }) => processId !== undefined)).toBe(mode === 'record')
})
