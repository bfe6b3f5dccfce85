/** Revoking a key ends its running answers, also from another process. Their tokens are charged. */
import { once } from 'node:events'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const words = 100_000

async function open(database: string): Promise<Llm & { running(): number }> {
  const engine = scriptedEngine('word '.repeat(words).trim(), { delayMs: 2 })
  const llm = await createLlm({ engine, models: emptyFolder(), auth: 'keys', database })
  onTestFinished(() => llm.close())
  return { ...llm, running: () => engine.running }
}

async function serve(llm: Llm): Promise<string> {
  const { url, close } = await listen(express().use(llmRouter(llm)))
  onTestFinished(close)
  return url
}

const bodies = {
  '/v1/chat/completions': {},
  '/v1/messages': { max_tokens: words },
  '/api/chat': {},
}
const ask = (url: string, path: keyof typeof bodies, secret: string): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': secret },
    body: JSON.stringify({
      model: 'tiny',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
      ...bodies[path],
    }),
  })

/** Reads a response to its end, and calls `onText` once, after the first generated text. */
async function read(response: Response, onText: () => Promise<unknown>): Promise<string> {
  let body = ''
  let hasText = false
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    body += Buffer.from(chunk).toString()
    if (hasText || !body.includes('word')) continue
    hasText = true
    await onText()
  }
  return body
}

describe.each(databases())('revoked keys in $name', ({ fresh }) => {
  test.each(Object.keys(bodies) as (keyof typeof bodies)[])(
    'a stream of %s ends with an error when its key is revoked',
    async (path) => {
      const llm = await open(await fresh())
      const { key, secret } = await llm.keys.create({ name: 'leaked' })
      const url = await serve(llm)

      const body = await read(await ask(url, path, secret), () => llm.keys.revoke(key.id))

      expect(body.slice(-400)).toContain('Invalid API key')
      expect(body).not.toContain('[DONE]')
      expect(llm.running()).toBe(0)
      const [call] = await vi.waitFor(async () => {
        const calls = await llm.usage.calls()
        expect(calls).toHaveLength(1)
        return calls
      })
      expect(call).toMatchObject({ caller: key.id, status: 'aborted' })
      expect(call?.tokens.output).toBeLessThan(words)
    },
  )

  test('a stream ends when another Llm instance revokes its key, and streams of other keys continue', async () => {
    const location = await fresh()
    const [llm, other] = [await open(location), await open(location)]
    const [leaked, good] = [
      await llm.keys.create({ name: 'leaked' }),
      await llm.keys.create({ name: 'good' }),
    ]
    const url = await serve(llm)
    const otherStream = await ask(url, '/v1/chat/completions', good.secret)

    const body = await read(await ask(url, '/v1/chat/completions', leaked.secret), () =>
      other.keys.revoke(leaked.key.id),
    )

    expect(body.slice(-400)).toContain('Invalid API key')
    await vi.waitFor(() => expect(llm.running()).toBe(1))
    await otherStream.body?.cancel()
    await vi.waitFor(() => expect(llm.running()).toBe(0))
  })
})

test('a revoked key fails a generation in process, and an aborted generation ends without an error', async () => {
  const llm = await open(':memory:')
  const { key, secret } = await llm.keys.create({ name: 'leaked' })
  const caller = await llm.keys.authenticate(secret)
  const request = { model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } } as const
  const aborted = new AbortController()
  const countEvents = async (signal: AbortSignal): Promise<number> => {
    let events = 0
    for await (const _ of await llm.generate(request, { signal, caller })) if (++events === 3) aborted.abort()
    return events
  }

  expect(await countEvents(aborted.signal)).toBeLessThan(10)
  const refused = countEvents(new AbortController().signal)
  await vi.waitFor(() => expect(llm.running()).toBe(1))
  await llm.keys.revoke(key.id)
  await expect(refused).rejects.toMatchObject({ code: 'authentication' })
})

test('revoking a key fails its running embeddings', async () => {
  const engine = Object.assign(scriptedEngine('Hi'), {
    embed: async (_request: object, { signal }: { readonly signal: AbortSignal }) => {
      onStarted()
      await once(signal, 'abort')
      throw signal.reason
    },
  })
  let onStarted = (): void => {}
  const started = new Promise<void>((resolve) => {
    onStarted = resolve
  })
  const llm = await createLlm({ engine, models: emptyFolder(), auth: 'keys', database: ':memory:' })
  onTestFinished(() => llm.close())
  const { key, secret } = await llm.keys.create({ name: 'leaked' })
  const caller = await llm.keys.authenticate(secret)
  const embedding = llm.embed({ model: 'tiny', inputs: ['Hi'] }, { caller })
  await started

  await llm.keys.revoke(key.id)

  await expect(embedding).rejects.toMatchObject({ code: 'authentication' })
})
