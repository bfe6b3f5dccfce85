/** A fleet of apps with Modelmount, over Modelmount's own API. */
import { expect, test } from 'vitest'
import { startFleet } from '../support/fleet-servers.ts'
import { sendJson, type UpstreamServer } from '../support/upstream-server.ts'

/** Starts two apps. Only the first one has the model `pirate`. */
async function start() {
  const { fleet, servers } = await startFleet(2, { api: 'modelmount', server: undefined, health: false })
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
