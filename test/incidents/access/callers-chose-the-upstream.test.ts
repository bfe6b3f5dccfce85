/** D-8: a field of the request chose the upstream server, which then got the key of the operator. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { SmallRegistry } from '../../support/registry.ts'
import { chats, serveScripted } from '../../support/served.ts'

const models = emptyFolder()
let upstream: SmallRegistry
beforeAll(async () => {
  upstream = await SmallRegistry.start()
})
afterAll(() => upstream.close())

test.each(chats)('$path ignores fields and headers that name an upstream', async ({ path, body }) => {
  const { engine, post } = await serveScripted(models)
  const { url, host } = upstream
  await post(path, body)

  const byBody = await post(path, {
    ...body,
    api_base: url,
    base_url: url,
    custom_host: url,
    api_key: 'x',
    provider: { base_url: url },
    metadata: { api_base: url },
    extra_headers: { authorization: 'x' },
    litellm_params: { api_base: url },
  })
  const byHeader = await post(path, body, {
    'x-portkey-custom-host': url,
    'x-upstream': url,
    'x-base-url': url,
    'openai-api-base': url,
    'x-original-host': host,
  })

  expect([byBody.status, byHeader.status]).toEqual([200, 200])
  expect(new Set(engine.requests.map((request) => JSON.stringify(request))).size).toBe(1)
  expect(upstream.requests).toEqual([])
})
