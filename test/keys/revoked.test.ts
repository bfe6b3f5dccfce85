/** Answers that run end when their key is revoked, here or elsewhere, and what they have used is billed. */
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

/** Reads an answer to its end, and calls back when it has begun to speak. */
async function read(response: Response, onSpeech: () => Promise<unknown>): Promise<string> {
  let said = ''
  let hasSpoken = false
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    said += Buffer.from(chunk).toString()
    if (hasSpoken || !said.includes('word')) continue
    hasSpoken = true
    await onSpeech()
  }
  return said
}

describe.each(databases())('in $name', ({ fresh }) => {
  test.each(Object.keys(bodies) as (keyof typeof bodies)[])(
    'a stream of %s ends with an error when its key is revoked',
    async (path) => {
      const llm = await open(await fresh())
      const { key, secret } = await llm.keys.create({ name: 'leaked' })
      const url = await serve(llm)

      const said = await read(await ask(url, path, secret), () => llm.keys.revoke(key.id))

      expect(said.slice(-400)).toContain('Invalid API key')
      expect(said).not.toContain('[DONE]')
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

  test('ends also when another process revokes the key, and answers of other keys continue', async () => {
    const location = await fresh()
    const [llm, other] = [await open(location), await open(location)]
    const [leaked, good] = [
      await llm.keys.create({ name: 'leaked' }),
      await llm.keys.create({ name: 'good' }),
    ]
    const url = await serve(llm)
    const going = await ask(url, '/v1/chat/completions', good.secret)

    const said = await read(await ask(url, '/v1/chat/completions', leaked.secret), () =>
      other.keys.revoke(leaked.key.id),
    )

    expect(said.slice(-400)).toContain('Invalid API key')
    await vi.waitFor(() => expect(llm.running()).toBe(1))
    await going.body?.cancel()
    await vi.waitFor(() => expect(llm.running()).toBe(0))
  })
})

test('a unary call is rejected, and an aborted one ends quietly', async () => {
  const llm = await open(':memory:')
  const { key, secret } = await llm.keys.create({ name: 'leaked' })
  const caller = await llm.keys.authenticate(secret)
  const request = { model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } } as const
  const left = new AbortController()
  const reading = async (signal: AbortSignal): Promise<number> => {
    let items = 0
    for await (const _ of await llm.generate(request, { signal, caller })) if (++items === 3) left.abort()
    return items
  }

  expect(await reading(left.signal)).toBeLessThan(10)
  const refused = reading(new AbortController().signal)
  await vi.waitFor(() => expect(llm.running()).toBe(1))
  await llm.keys.revoke(key.id)
  await expect(refused).rejects.toMatchObject({ code: 'authentication' })
})
