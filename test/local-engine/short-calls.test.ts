/** With thousands of short HTTP calls, the app stays responsive, and the model process does not grow. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type MeasuredApp, startMeasuredApp } from '../support/measured-app.ts'
import { hasProc, residentBytes } from '../support/processes.ts'

const models = emptyFolder()
let app: MeasuredApp

beforeAll(async () => {
  app = await startMeasuredApp(models)
})

afterAll(() => app.close())

/** Makes a call with its own prompt, every second one as a stream. Returns its failure, if any. */
async function call(index: number): Promise<string | undefined> {
  const response = await fetch(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'tiny',
      messages: [{ role: 'user', content: `Hello, box ${index}` }],
      max_tokens: 4,
      stream: index % 2 === 0,
    }),
  })
  const body = await response.text()
  const isWhole = index % 2 === 0 ? body.endsWith('data: [DONE]\n\n') : body.includes('"finish_reason"')
  return response.ok && isWhole && !body.includes('"error"') ? undefined : `${response.status} ${body}`
}

/** Makes calls from one index up to another, 16 at a time. Returns the failures. */
async function calls(from: number, to: number): Promise<string[]> {
  const failed: string[] = []
  let next = from
  const client = async (): Promise<void> => {
    while (next < to) failed.push(...[await call(next++)].filter((one) => one !== undefined))
  }
  await Promise.all(Array.from({ length: 16 }, client))
  return failed
}

/**
 * In the first 2,000 calls, the heap of V8 grows by 10 to 25 MB. In the next 5,000, the process grows by 3 MB, as
 * measured on 2026-11-27.
 */
const warmUp = 2_000

test('2,000 calls, 16 at a time, all succeed within the bounds for memory and event loop delay', async () => {
  const measure = async () => {
    const { modelProcesses, loopDelayMs } = await app.measure()
    const [processId = 0] = modelProcesses
    return { processId, loopDelayMs, bytes: hasProc ? residentBytes(processId) : 0 }
  }

  const failed = await calls(0, warmUp)
  const early = await measure()
  failed.push(...(await calls(warmUp, warmUp + 1_000)))
  const halfway = await measure()
  failed.push(...(await calls(warmUp + 1_000, warmUp + 2_000)))
  const late = await measure()

  expect(failed).toEqual([])
  expect(late.processId).toBe(early.processId)
  expect((late.bytes - early.bytes) / 1024 ** 2).toBeLessThan(10)
  expect((late.bytes - halfway.bytes) / 1024 ** 2).toBeLessThan(6)
  for (const { loopDelayMs } of [halfway, late]) expect(loopDelayMs).toBeLessThan(20)
}, 120_000)
