/** A fleet of apps with Modelmount, over Modelmount's own API. */
import { expect, test } from 'vitest'
import { collect, uncached } from '../../packages/core/src/engine/events.ts'
import { startFleet } from '../support/fleet-servers.ts'
import { sendJson, type UpstreamServer } from '../support/upstream-server.ts'

/** Starts two apps. Only the first one has the model `pirate`. */
async function start() {
  const { fleet, servers } = await startFleet(2, {
    api: 'modelmount',
    server: undefined,
    health: false,
    maxFailures: 1,
  })
  const [first, second] = servers as [UpstreamServer, UpstreamServer]
  for (const server of servers) {
    const names = server === first ? ['tiny', 'pirate'] : ['tiny']
    const models = names.map((name) => ({ name, digest: name, sizeBytes: 1, modifiedAt: 0 }))
    server.models = (response) => sendJson(response, { models })
    server.answer = (response, { path }) =>
      void response.end(`${JSON.stringify({ result: path.endsWith('/unload') ? null : 2 })}\n`)
  }
  const pathsOf = ({ requests }: UpstreamServer) =>
    requests.map(({ path }) => path.replace('/modelmount/v1/', '')).filter((path) => path !== 'models')
  return { fleet, first, second, pathsOf }
}

test('a model is unloaded where it is, also before the first call', async () => {
  const { fleet, first, second, pathsOf } = await start()

  await fleet.unload('pirate')
  await fleet.unload('tiny')

  expect(pathsOf(first)).toEqual(['unload', 'unload'])
  expect(pathsOf(second)).toEqual(['unload'])
  await expect(fleet.unload('nobody')).rejects.toMatchObject({ code: 'not_found' })
})

test('the prompt states of a tenant are deleted in all apps, also before the first call', async () => {
  const { fleet, first, second, pathsOf } = await start()

  expect(await fleet.deletePromptStates?.('ann')).toBe(4)

  for (const server of [first, second]) {
    expect(pathsOf(server)).toEqual(['delete-prompt-states'])
    expect(server.requests.at(-1)?.headers['x-modelmount-forwarded']).toContain('tenant=ann')
  }
})

test('while one app is away, the others delete the prompt states, and the caller gets the error', async () => {
  const { fleet, first, second, pathsOf } = await start()
  await first.close()

  await expect(fleet.deletePromptStates?.('ann')).rejects.toMatchObject({ code: 'upstream' })

  expect(pathsOf(second)).toEqual(['delete-prompt-states'])
})

test.each(['internal', 'unavailable'])(
  'an app that reports the error %s is ejected, and its calls run in the other app',
  async (code) => {
    const { fleet, first, second } = await start()
    const usage = { ...uncached, inputTokens: 3, reusedTokens: 0 }
    const lines = [
      { event: { type: 'start', model: 'tiny', fingerprint: 'fp', ...usage } },
      { event: { type: 'text', text: 'fine', tokens: 1 } },
      {
        event: {
          ...{ type: 'end', finishReason: 'stop', usage: { ...usage, outputTokens: 1 } },
          timings: { promptMs: 1, generateMs: 1, loadMs: 0 },
        },
      },
    ]
    first.answer = (response) =>
      void response.end(`${JSON.stringify({ error: { code, message: 'No.', details: {} } })}\n`)
    second.answer = (response) => void response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))

    // Enough different prompts that some go to the failing app first.
    for (let index = 0; index < 16; index++) {
      const input = { kind: 'text', prompt: [`Question ${index}`], template: false } as const
      const call = { signal: new AbortController().signal }
      expect((await collect(fleet.generate({ model: 'tiny', input }, call))).text).toBe('fine')
    }

    expect(fleet.replicas()).toMatchObject([
      { url: `${first.url}/`, ejections: 1, lastFailure: { kind: 'failed' } },
      { url: `${second.url}/`, state: 'ready', failedCalls: 0 },
    ])
  },
)
