import { type Caller, createLlm, type Llm, LlmError } from '@modelmount/core'
import { afterEach, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

const model = 'tiny-llama-spm.f16'
let llm: Llm
afterEach(() => llm.close())

/** Starts an answer and reads only its beginning. */
async function begin(caller: Caller) {
  const generation = await llm.generate(
    {
      model,
      input: { kind: 'text', prompt: ['Once upon a time'], template: false },
      maxTokens: 400,
      sampling: { temperature: 0, ignoreEos: true },
    },
    { signal: new AbortController().signal, caller },
  )
  return generation[Symbol.asyncIterator]()
}

test('a call that gets no turn in time is rejected, and the running answer goes on', async () => {
  const local = { contextSize: 1_024, parallel: 1 }
  llm = await createLlm({ models: noiseModel, local, maxAdmitted: 1, queueTimeout: '30ms' })
  const caller = { id: 'ann' }
  const running = await begin(caller)

  const late = await llm.chat('Hello', { model, maxTokens: 1, caller }).catch(LlmError.from)

  expect(late).toMatchObject({ code: 'overloaded', details: { retryAfterMs: expect.any(Number) } })
  let last: unknown
  for (let step = await running.next(); !step.done; step = await running.next()) last = step.value
  expect(last).toMatchObject({ type: 'end', usage: { outputTokens: 400 } })
  expect((await llm.chat('Hello', { model, maxTokens: 1 })).usage.outputTokens).toBe(1)
})
