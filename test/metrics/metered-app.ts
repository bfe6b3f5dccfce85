/** Starts the app whose metrics are scraped, and makes it do what its metrics count. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { answerWith } from '../support/fleet-servers.ts'
import { noiseBlob, SmallRegistry } from '../support/registry.ts'
import { post } from '../support/served.ts'
import { madeModel, put } from '../support/transfers.ts'
import { UpstreamServer } from '../support/upstream-server.ts'

export interface MeteredApp {
  readonly url: string
  metrics(): Promise<string>
  /**
   * Does once what each metric counts: a crash, a refusal, a batch, a pull, a call of a fleet, cached prompts and unknown
   * models.
   */
  doEverything(): Promise<void>
  close(): Promise<void>
}

export async function startMeteredApp(models: string): Promise<MeteredApp> {
  const registry = await SmallRegistry.start()
  put(registry, 'library/small', madeModel(noiseBlob('metered', 100_000)))
  const file = fileURLToPath(new URL('app.mjs', import.meta.url))
  const replica = await UpstreamServer.start()
  replica.answer = answerWith('Hello there.')
  const child = fork(file, [models, registry.host, replica.url])
  const [url] = (await once(child, 'message')) as [string]
  return {
    url,
    metrics: async () => (await fetch(`${url}/metrics`)).text(),
    doEverything: () => doEverything(url, child),
    close: async () => {
      child.disconnect()
      if (child.exitCode === null) await once(child, 'exit')
      await registry.close()
      await replica.close()
    },
  }
}

async function doEverything(url: string, child: ChildProcess): Promise<void> {
  const chat = (model: string, max_tokens = 5) => ({
    ...{ model, max_tokens, stream: false },
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const statusOf = async (path: string, body: object) => {
    const response = await post(url + path, body)
    await response.arrayBuffer()
    return response.status
  }

  // A cached prompt is written by the first call, and read by the second one.
  const text = 'All dogs of the guests are welcome in the garden. '.repeat(20)
  const system = [{ type: 'text', text, cache_control: { type: 'ephemeral' } }]
  expect(await statusOf('/v1/messages', { ...chat('tiny'), system })).toBe(200)
  expect(await statusOf('/v1/messages', { ...chat('tiny'), system })).toBe(200)
  expect(await statusOf('/v1/messages', chat('fleet/small'))).toBe(200)
  expect(await statusOf('/api/chat', chat('no-such-model'))).toBe(404)
  expect(await statusOf('/v1/messages', chat('limited'))).toBe(200)
  expect(await statusOf('/v1/messages', chat('limited'))).toBe(429)
  const requests = [{ custom_id: 'one', params: chat('tiny') }]
  expect(await statusOf('/v1/messages/batches', { requests })).toBe(200)

  child.send('pull')
  const [processIds] = (await once(child, 'message')) as [readonly number[]]
  for (const processId of processIds) process.kill(processId, 'SIGKILL')
  await expect.poll(() => statusOf('/v1/messages', chat('tiny')), { timeout: 20_000 }).toBe(200)
}
