/** Answers of the built-in model that are recorded once and replayed without a model, through the HTTP routes. */
import { createLlm, type Llm } from '@modelmount/core'
import { type RecordingEngine, recordingEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import request from 'supertest'
import { expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'

const file = `${emptyFolder()}/answers.json`
const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Get the current weather for a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]
const messages = [{ role: 'user', content: 'What is the weather in Paris?' }]
const payer = { id: 'ann', spendingLimit: { usd: 1, period: 'day' } } as const
const accounts = { database: ':memory:', prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } } }

/** Calls each API, and returns what clients see, without random ids and times. */
async function useApis(llm: Llm): Promise<readonly unknown[]> {
  const app = express().use(llmRouter(llm))
  const called = await request(app)
    .post('/v1/chat/completions')
    .send({ model: 'bob', messages, tools, tool_choice: 'required' })
    .expect(200)
  const [call] = called.body.choices[0].message.tool_calls
  const answered = await request(app)
    .post('/v1/messages')
    .send({
      model: 'bob',
      max_tokens: 12,
      messages: [
        ...messages,
        { role: 'assistant', content: [{ type: 'tool_use', id: call.id, name: 'get_weather', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Rain' }] },
      ],
    })
    .expect(200)
  const streamed = await request(app).post('/api/generate').send({ model: 'bob', prompt: 'Hi' }).expect(200)
  const tooLong = await request(app)
    .post('/v1/completions')
    .send({ model: 'bob', prompt: 'word '.repeat(2_000) })
    .expect(400)
  const paid = await llm.chat('Who are you?', { model: 'bob', caller: payer, temperature: 0 })
  const rows = await llm.usage.calls({})
  return [
    call.function,
    answered.body.content,
    answered.body.usage,
    streamed.text.replace(/"(created_at|\w+_duration)":[^,}]+/g, '"$1":0'),
    tooLong.body.error.message,
    paid.text,
    rows.map(({ model, tokens, nanoUsd, status }) => ({ model, tokens, nanoUsd, status })),
    llm.loaded().map(({ name, contextSize }) => ({ name, contextSize })),
  ]
}

test('answers of all APIs and their costs replay without the model and its Modelfile', async () => {
  const recorder = await createLlm({
    ...accounts,
    models: emptyFolder(),
    local: { contextSize: 1_024 },
    engine: (local) => recordingEngine(local, file, { mode: 'record' }),
  })
  const parameters = { temperature: 0, num_predict: 40, num_ctx: 512, stop: ['\n\n'] }
  for await (const _progress of recorder.models.create({
    name: 'bob',
    from: 'tiny',
    system: 'You are Bob.',
    parameters,
  })) {
    // Creates the model.
  }
  const recorded = await useApis(recorder)
  await recorder.close()

  const engine: RecordingEngine = recordingEngine(undefined, file)
  const llm = await createLlm({ ...accounts, models: emptyFolder(), engine })
  const replayed = await useApis(llm)
  await llm.close()

  expect(replayed).toEqual(recorded)
  expect(engine.unused()).toEqual([])
  expect(recorded[0]).toMatchObject({ name: 'get_weather', arguments: expect.stringContaining('city') })
  expect(recorded[3]).toContain('"thinking":"The"')
  expect(recorded[4]).toContain('512')
  expect(recorded[6]).toHaveLength(5)
  expect(recorded.at(-1)).toEqual([{ name: 'bob:latest', contextSize: 512 }])
})
