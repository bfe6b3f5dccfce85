/** An app with rate limits that records its requests. Each caller uses its name as its API key. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { expect } from 'vitest'
import { listen } from '../support/listen.ts'

export const greeting = 'Hello there.'

/** A caller at its spending limit. */
export const poor = 'poor'

interface Arrival {
  readonly at: number
  readonly status: number
  readonly retryAfterMs: number
}

export interface LimitedServer {
  /** Base URL without a trailing slash. */
  readonly url: string
  /** Recorded requests, in the order in which their responses finished. */
  readonly arrivals: Arrival[]
  /** Uses up the rate limit of a caller. The next request is then rejected. */
  useUp(name: string): Promise<void>
  /** Expects one rejected request and one answered retry, which waited for `retry-after-ms`. */
  expectOneWait(): void
  close(): Promise<void>
}

/**
 * @param models Model folder.
 * @param waitMs Time until a used-up limit admits another request, in ms.
 */
export async function serveLimited(models: string, waitMs: number): Promise<LimitedServer> {
  const requestsPerMinute = 60_000 / waitMs
  const llm = await createLlm({
    engine: scriptedEngine(greeting),
    models,
    auth: 'host',
    database: ':memory:',
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } },
  })
  const arrivals: Arrival[] = []
  const app = express()
    .use((_req, res, next) => {
      const at = performance.now()
      res.once('finish', () => {
        arrivals.push({ at, status: res.statusCode, retryAfterMs: Number(res.getHeader('retry-after-ms')) })
      })
      next()
    })
    .use(
      llmRouter(llm, {
        authenticate: (req) => {
          const id = req.get('x-api-key') ?? String(req.get('authorization')).replace('Bearer ', '')
          return id === poor
            ? { id, spendingLimit: { usd: '0.000000001', period: 'month' } }
            : { id, limits: { requestsPerMinute } }
        },
      }),
    )
  const server = await listen(app)

  return {
    url: server.url,
    arrivals,
    useUp: async (name) => {
      const ask = () =>
        fetch(`${server.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${name}` },
          body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }),
        })
      const answers = await Promise.all(Array.from({ length: requestsPerMinute }, ask))
      expect(answers.map(({ status }) => status)).toEqual(Array(requestsPerMinute).fill(200))
      await Promise.all(answers.map((answer) => answer.text()))
      arrivals.length = 0
    },
    expectOneWait: () => {
      const [refused, answered] = arrivals as [Arrival, Arrival]
      expect(arrivals.map(({ status }) => status)).toEqual([429, 200])
      expect(refused.retryAfterMs).toBeLessThanOrEqual(waitMs)
      // A timer may fire a millisecond early.
      expect(answered.at - refused.at).toBeGreaterThanOrEqual(refused.retryAfterMs - 1)
    },
    close: async () => {
      await server.close()
      await llm.close()
    },
  }
}
