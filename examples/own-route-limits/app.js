/**
 * An app without a model that limits its own routes: by address, by user, by the size of a request, and by
 * its actual cost.
 */
import { rateLimit } from '@modelmount/express'
import express from 'express'

export function createApp(limiter) {
  const app = express()

  // Each client address gets 30 requests per minute.
  app.get('/time', rateLimit(limiter), (_req, res) => {
    res.json({ time: new Date().toISOString() })
  })

  // A route with its own limits counts separately. A request without a user counts by client address. Each
  // user gets 10 requests and 1,000 words per minute, and 2 requests at a time. A request reserves the words
  // of its body, and settles the words of its summary.
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
