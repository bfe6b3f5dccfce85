import { createLlm, type Llm } from '@modelmount/core'
import type { Express } from 'express'
import request from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

const asked: string[] = []
let llm: Llm
let app: Express

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 2_048 } })
  app = createApp(llm, async (city: string) => {
    asked.push(city)
    return { city, sky: 'sunny', degrees: 21 }
  })
})

afterAll(() => llm.close())

test('a message becomes an object', async () => {
  const { body } = await request(app).post('/tickets').send({ message: 'My parcel is late.' }).expect(200)

  expect(body).toEqual({
    topic: expect.stringMatching(/^(billing|delivery|other)$/),
    isUrgent: expect.any(Boolean),
    summary: expect.any(String),
  })
})

test('the model asks the app for the weather, and answers with it', async () => {
  const question = 'What is the weather in Rome?'

  const { body } = await request(app).post('/questions').send({ question }).expect(200)

  expect(asked).toEqual(['Rome'])
  expect(body.calls).toMatchObject([{ name: 'get_weather', arguments: { city: 'Rome' } }])
  expect(body.answer).toContain('sunny')
})
