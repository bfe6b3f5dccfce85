// Calls of `state-costs.mjs`, as an HTTP request makes them: the secret of a key is authenticated, then the call runs.
import { createLlm } from '@modelmount/core'
import { redisLimiterStore } from '@modelmount/core/redis'
import { scriptedEngine } from '@modelmount/core/testing'
import { createClient } from 'redis'

const price = { inputPerMillionUsd: 1, outputPerMillionUsd: 2 }

/**
 * @param database a URL, or a pool of `pg`
 * @param redisPath socket of the Redis that counts the limits. @default the database counts them
 * @param engine what answers. @default an answer of one token, at once
 */
export async function openApp({ database, redisPath, engine = scriptedEngine('Hello.') }) {
  const client = redisPath && createClient({ socket: { path: redisPath } })
  client?.on('error', () => {})
  await client?.connect()
  const llm = await createLlm({
    ...{ auth: 'keys', database, engine, models: [], prices: { '*': price } },
    ...(client && { limiterStore: redisLimiterStore(client) }),
  })
  return {
    llm,
    close: async () => {
      await llm.close()
      client?.destroy()
    },
  }
}

/** Returns the number of output tokens. */
export async function callOnce(llm, secret, signal = new AbortController().signal) {
  const caller = await llm.keys.authenticate(secret)
  const input = { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] }
  let events = 0
  for await (const _ of await llm.generate({ model: 'tiny', input }, { caller, signal })) events++
  return events
}
