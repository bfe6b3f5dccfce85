/** A model process that receives SIGSTOP does not respond any more. The app replaces it within 10 s. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { beforeAll, describe, type TestContext, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { noOrphan, until } from '../support/processes.ts'

const models = emptyFolder()
const limitMs = 10_000

beforeAll(() => copyFile(noiseModel, join(models, 'noise.gguf')))

/** Each context size has its own model process, so that the tests can run concurrently. */
async function start(contextSize: number, { onTestFinished }: TestContext): Promise<Llm> {
  const llm = await createLlm({ models, local: { contextSize } })
  onTestFinished(() => llm.close())
  return llm
}

const hello = { model: 'tiny', temperature: 0 }
const greeting = 'Hello! How can I help you?'

/** Stops the model process. Returns its id and a clock that starts now. */
function stop(llm: Llm): { readonly processId: number; passedMs(): number } {
  const processId = llm.loaded()[0]?.processId as number
  const stoppedAt = performance.now()
  process.kill(processId, 'SIGSTOP')
  return { processId, passedMs: () => performance.now() - stoppedAt }
}

describe.skipIf(process.platform === 'win32')('a model process after SIGSTOP', { concurrent: true }, () => {
  test('ends its stream with an upstream error, and the next call is served', async (context) => {
    const { expect } = context
    const llm = await start(2048, context)
    const stream = llm.chat('Hello', { model: 'noise', stream: true })[Symbol.asyncIterator]()
    await stream.next()
    const stopped = stop(llm)

    const rest = async (): Promise<void> => {
      while (!(await stream.next()).done);
    }
    await expect(rest()).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('stopped answering'),
    })
    const endedMs = stopped.passedMs()
    const { usage } = await llm.chat('Hello', { model: 'noise', maxTokens: 5 })
    const servedMs = stopped.passedMs()

    expect(usage.outputTokens).toBe(5)
    expect(endedMs).toBeLessThan(limitMs)
    expect(servedMs).toBeLessThan(limitMs)
    await noOrphan([stopped.processId])
  })

  test('is removed from loaded() while idle, and replaced for the next call', async (context) => {
    const { expect } = context
    const llm = await start(2049, context)
    await llm.chat('Hello', hello)
    const stopped = stop(llm)

    await until(() => llm.loaded().length === 0, limitMs)

    expect(stopped.passedMs()).toBeLessThan(limitMs)
    await noOrphan([stopped.processId])
    expect((await llm.chat('Hello', hello)).text).toBe(greeting)
  })

  test('delays the next call by less than 10 s, and the call succeeds', async (context) => {
    const { expect } = context
    const llm = await start(2051, context)
    await llm.chat('Hello', hello)
    const stopped = stop(llm)

    const { text } = await llm.chat('Hello', hello)
    const servedMs = stopped.passedMs()

    expect(text).toBe(greeting)
    expect(servedMs).toBeLessThan(limitMs)
    await noOrphan([stopped.processId])
  })

  test('is not listed as ready while a call waits for it', async (context) => {
    const { expect } = context
    const llm = await start(2050, context)
    await llm.chat('Hello', hello)
    const stopped = stop(llm)
    const isReady = (): boolean =>
      llm.loaded().some(({ processId, state }) => processId === stopped.processId && state === 'ready')

    const answer = llm.chat('Hello', hello)
    await until(() => !isReady(), limitMs)

    expect(stopped.passedMs()).toBeLessThan(limitMs)
    expect((await answer).text).toBe(greeting)
  })
})
