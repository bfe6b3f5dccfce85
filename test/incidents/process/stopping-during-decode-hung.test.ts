/** C-1: a signal to stop deadlocked an engine that was decoding, for minutes, while its health route said 200. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm } from '@modelmount/core'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { isAlive, until } from '../../support/processes.ts'
import { times } from '../../support/scale.ts'

const models = emptyFolder()
const stops = times(200, 6)
/** Includes the five seconds that a model process waits for another app. */
const limitMs = 15_000

test(`a model process is gone within 15 s of each of ${stops} stops at random moments of a stream`, async () => {
  /** By stop, the id of the process if it is still there after the limit. */
  const left: Promise<number | undefined>[] = []
  for (let stop = 0; stop < stops; stop++) {
    // Each context size has its own model process.
    const llm = await createLlm({ models, local: { contextSize: 600 + stop } })
    const input = { kind: 'text' as const, prompt: ['Tell me a story.'] }
    const request = { model: 'tiny', input, maxTokens: 500, sampling: { ignoreEos: true } }
    const { signal } = new AbortController()
    const stream = (await llm.generate(request, { signal, stream: true }))[Symbol.asyncIterator]()
    await stream.next()
    const processId = llm.loaded()[0]?.processId as number
    const rest = (async () => {
      while (!(await stream.next()).done);
    })().catch(() => {})
    await delay(Math.random() * 100)

    // Every second process also gets the signal of a stopped service, as its app does.
    if (stop % 2) process.kill(processId, 'SIGTERM')
    await llm.close()
    await rest
    const end = until(() => !isAlive(processId), limitMs)
    left.push(
      end.then(
        () => undefined,
        () => processId,
      ),
    )
  }

  expect(await Promise.all(left)).toEqual(Array(stops).fill(undefined))
}, 600_000)
