/** PostgreSQL was restarted, or its network was lost. Clients got 500, which no client repeats. */
import { createLlm, type LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test, vi } from 'vitest'
import { databases } from '../../support/databases.ts'
import { listen } from '../../support/listen.ts'
import { silentProxy } from '../../support/silent-proxy.ts'

const [, postgres] = databases()

test.runIf(postgres)('each API answers 503 with retry-after, and the log has the reason', async () => {
  const proxy = await silentProxy((await postgres?.fresh()) ?? '')
  const logger = { warn: vi.fn(), error: vi.fn() }
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: [],
    auth: 'keys',
    database: proxy.url,
    logger,
  })
  const { secret } = await llm.keys.create({ name: 'any', scopes: ['inference', 'admin'] })
  const server = await listen(express().use(llmRouter(llm)).use('/admin', adminRouter(llm)))
  onTestFinished(async () => {
    await server.close()
    await llm.close()
  })
  const ask = (path: string, body?: object) =>
    fetch(server.url + path, {
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
  const chat = { model: 'one', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 }
  const routes = [
    ['/v1/chat/completions', chat],
    ['/v1/messages', chat],
    ['/api/chat', { ...chat, stream: false }],
    ['/admin/keys'],
    ['/admin/usage'],
  ] as const
  for (const [path, body] of routes) expect([path, (await ask(path, body)).status]).toEqual([path, 200])

  await proxy.close()

  for (const [path, body] of routes) {
    const response = await ask(path, body)
    expect([path, response.status]).toEqual([path, 503])
    expect([path, response.headers.get('retry-after')]).toEqual([path, '1'])
    expect(await response.text()).toContain('The database is unavailable. Try again in 1 s.')
  }
  await expect(llm.keys.list()).rejects.toMatchObject({ code: 'unavailable', status: 503 })
  expect(logger.error).toHaveBeenCalledWith(
    { err: expect.objectContaining({ code: 'unavailable' }), requestId: expect.stringMatching(/^req_/) },
    'The database is unavailable. Try again in 1 s.',
  )
  const [{ err }] = logger.error.mock.lastCall as [{ err: LlmError }]
  expect(String(err.cause)).toMatch(
    /The connection to PostgreSQL failed: .*(ECONNREFUSED|terminated|ECONNRESET)/,
  )
})
