/** Thousands of short calls through HTTP: the app stays quick, and the model process as large as it was. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { hasProc, residentBytes } from '../support/processes.ts'

const models = emptyFolder()
/** A process of its own: what the client does here is not measured. */
const app = spawn(process.execPath, [fileURLToPath(new URL('./served-app.mjs', import.meta.url)), models], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
let url: string

beforeAll(async () => {
  const [port] = await once(createInterface({ input: app.stdout }), 'line')
  url = `http://127.0.0.1:${port}`
})

afterAll(async () => {
  app.stdin.end()
  await once(app, 'exit')
})

/** Every other one is a stream, and no two ask the same. */
async function call(index: number): Promise<string | undefined> {
  const response = await fetch(`${url}/v1/chat/completions`, {
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

/** Up to a number, 16 at a time; what failed. */
async function calls(from: number, to: number): Promise<string[]> {
  const failed: string[] = []
  let next = from
  const client = async (): Promise<void> => {
    while (next < to) failed.push(...[await call(next++)].filter((one) => one !== undefined))
  }
  await Promise.all(Array.from({ length: 16 }, client))
  return failed
}

test('2,000 calls, 16 at a time, all end whole, and neither memory nor the event loop suffers', async () => {
  const measured = async () => {
    const response = await fetch(`${url}/measured`)
    const found = (await response.json()) as { readonly processId: number; readonly loopDelayMs: number }
    return { ...found, bytes: hasProc ? residentBytes(found.processId) : 0 }
  }

  const failed = await calls(0, 200)
  const early = await measured()
  failed.push(...(await calls(200, 1_100)))
  const halfway = await measured()
  failed.push(...(await calls(1_100, 2_000)))
  const late = await measured()

  expect(failed).toEqual([])
  expect(late.processId).toBe(early.processId)
  // Of it, JavaScript's old space takes some 4 MB.
  expect((late.bytes - early.bytes) / 1024 ** 2).toBeLessThan(16)
  expect((late.bytes - halfway.bytes) / 1024 ** 2).toBeLessThan(6)
  expect(late.loopDelayMs).toBeLessThan(20)
}, 120_000)
