/**
 * A service that sells calls of models. Users log in to the site with a token of the site, and create API keys for their
 * customer. Calls of the API need such a key, and each key has a rate limit and a monthly spending limit.
 */
import { LlmError } from '@modelmount/core'
import { llmRouter, rateLimit } from '@modelmount/express'
import express from 'express'
import { jwtVerify } from 'jose'
import { z } from 'zod'
import { renderUsage } from './usage-page.js'

/** What customers pay for. In your app, the plan of a customer is in a table. */
export const plans = {
  free: {
    maxKeys: 1,
    limits: { requestsPerMinute: 5, concurrent: 1 },
    spendingLimit: { usd: 1, period: 'month' },
  },
  team: {
    maxKeys: 5,
    limits: { requestsPerMinute: 60, concurrent: 4 },
    spendingLimit: { usd: 50, period: 'month' },
  },
}

const claims = z.object({
  sub: z.string(),
  customer: z.string().regex(/^[a-z\d-]{1,40}$/),
  plan: z.enum(Object.keys(plans)),
})
const newKey = z.object({ name: z.string().trim().min(1).max(60) })

/** @param secret the bytes with which the site signs its tokens */
export function createApp(llm, secret) {
  const app = express()

  // Callers of the API. `auth: 'keys'` of the `Llm` checks their keys, limits and spending.
  app.use('/llm', llmRouter(llm))

  // Users of the site. Tries of wrong tokens are limited by address.
  app.use(
    '/account',
    rateLimit(llm.limits, { name: 'account', limits: { requestsPerMinute: 60 } }),
    async (req, res, next) => {
      const token = /^Bearer (.+)$/.exec(req.get('authorization') ?? '')?.[1]
      try {
        const { payload } = await jwtVerify(token ?? '', secret, { algorithms: ['HS256'], issuer: 'my-site' })
        res.locals.user = claims.parse(payload)
      } catch {
        return res.status(401).json({ error: 'log in first' })
      }
      next()
    },
  )

  app.get('/account/keys', async (_req, res) => {
    res.json((await keysOf(res.locals.user.customer)).map(describe))
  })

  app.post('/account/keys', express.json({ limit: '4kb' }), async (req, res) => {
    const { customer, plan } = res.locals.user
    const { success, data, error } = newKey.safeParse(req.body)
    if (!success) return res.status(400).json({ error: z.prettifyError(error) })
    const { maxKeys, limits, spendingLimit } = plans[plan]
    if ((await keysOf(customer)).length >= maxKeys)
      return res.status(409).json({ error: `the plan ${plan} has ${maxKeys} keys at most` })
    const { key, secret: keySecret } = await llm.keys.create({
      name: data.name,
      tenant: customer,
      limits,
      spendingLimit,
    })
    res.status(201).json({ ...describe(key), secret: keySecret }) // The secret is shown once, and stored nowhere.
  })

  app.delete('/account/keys/:id', async (req, res) => {
    // Keys of other customers do not exist for this one.
    const own = (await keysOf(res.locals.user.customer)).find(({ id }) => id === req.params.id)
    if (!own) return res.status(404).json({ error: 'no such key' })
    await llm.keys.revoke(own.id)
    res.status(204).end()
  })

  app.get('/account/usage', async (_req, res) => {
    const { customer, plan } = res.locals.user
    const keys = await keysOf(customer)
    const month = `${new Date().toISOString().slice(0, 7)}-01`
    const rows = await reportOf(new Date(month))
    const rowOf = ({ id }) => rows.find(({ group }) => group === id)
    res
      .type('html')
      .send(renderUsage({ customer, plan, month, keys: keys.map((key) => ({ key, usage: rowOf(key) })) }))
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    res.status(error.statusCode).set(error.headers).json({ error: error.message })
  })

  /** Active keys of a customer. With many thousands of keys, store their ids with your customers instead. */
  async function keysOf(customer) {
    const found = []
    for (let after, page; page === undefined || page.length === 1_000; after = page.at(-1)?.id) {
      page = await llm.keys.list({ limit: 1_000, after, status: 'active' })
      found.push(...page.filter(({ tenant }) => tenant === customer))
    }
    return found
  }

  async function reportOf(from) {
    const rows = []
    for (let after, page; page === undefined || page.length === 1_000; after = page.at(-1)?.group) {
      page = await llm.usage.report({ by: 'key', from, limit: 1_000, after })
      rows.push(...page)
    }
    return rows
  }

  return app
}

const describe = ({ id, name, hint, createdAt }) => ({ id, name, hint, createdAt })
