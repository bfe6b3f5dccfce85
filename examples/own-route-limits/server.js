/** An app without a model, and limits on its own routes: by user, by the size of what is asked, and by what it came to. */
import { fileURLToPath } from 'node:url'
import { createRateLimiter } from '@modelmount/core/limits'
import { rateLimit } from '@modelmount/express'
import express from 'express'

export function createApp(limiter) {
  const app = express()

  // Each address 30 times a minute.
  app.get('/time', rateLimit(limiter), (_req, res) => {
    res.json({ time: new Date().toISOString() })
  })

  // Limits of its own are counted apart from those of other routes. Who names no user is an address.
  // Each user 10 times, 2 at once, and 1,000 words a minute: as many as they send at first, as many as they got in the end.
  const perUser = rateLimit(limiter, {
    keyGenerator: (req) => req.get('x-user') && `user:${req.get('x-user')}`,
    name: 'summaries',
    limits: { requestsPerMinute: 10, tokensPerMinute: 1_000, concurrent: 2 },
    tokens: (req) => words(req.body).length,
  })
  app.post('/summaries', express.text(), perUser, async (req, res) => {
    const summary = words(req.body).slice(0, 5)
    await res.locals.reservation.settle({ requests: 1, tokens: summary.length })
    res.json({ summary: summary.join(' ') })
  })

  return app
}

const words = (text) => String(text).split(/\s+/)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // In memory; with `database: 'limits.db'` or `'postgres://…'` it is shared by several processes.
  const limiter = await createRateLimiter({ limits: { requestsPerMinute: 30 } })
  createApp(limiter).listen(3000, '127.0.0.1')
}
