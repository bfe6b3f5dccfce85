import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../../../test/support/listen.ts'
import { checkRegistries } from './registries.ts'

async function serveRegistry() {
  let requests = 0
  const { url, close } = await listen((_request, response) => {
    requests++
    response.writeHead(401).end()
  })
  onTestFinished(close)
  const host = new URL(url).host
  return {
    host,
    close,
    requests: () => requests,
    options: { store: { registries: [], privateRegistries: [host] } },
  }
}

test('registries are called only with --online', async () => {
  const { options, requests, host } = await serveRegistry()

  expect(await checkRegistries(options, false)).toMatchObject([{ status: 'ok' }])
  expect(requests()).toBe(0)
  expect(await checkRegistries(options, true)).toMatchObject([{ status: 'ok', message: `${host} answers` }])
  expect(requests()).toBe(1)
})

test('a registry that does not answer is a problem', async () => {
  const { options, close } = await serveRegistry()
  await close()

  expect(await checkRegistries(options, true)).toMatchObject([
    {
      status: 'problem',
      message: expect.stringContaining('ECONNREFUSED'),
      fix: expect.stringContaining('curl -v'),
    },
  ])
})
