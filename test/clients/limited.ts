/** An app with limits that records its requests. Each client is a separate caller, with its name as its key. */
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
  /** Without a slash at its end. */
  readonly url: string
  /** In the order of their answers. */
  readonly arrivals: Arrival[]
  /** Takes all that a minute has; for the wait there is no more. */
  useUp(name: string): Promise<void>
  /** Rejected once, and answered on the retry, which respects `retry-after`. */
  expectOneWait(): void
  close(): Promise<void>
}

/**
 * @param models a folder
 * @param waitMs until there is room for one more
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
      // A timer may be a millisecond early.
      expect(answered.at - refused.at).toBeGreaterThanOrEqual(refused.retryAfterMs - 1)
    },
    close: async () => {
      await server.close()
      await llm.close()
    },
  }
}
