/** `modelmount serve --metrics` and `--metrics-port`. */
import type { Llm } from '@modelmount/core'
import { registerMetrics } from '@modelmount/core/metrics'
import { metricsRouter } from '@modelmount/express'
import express, { type Express, type RequestHandler, type Router } from 'express'
import { Registry } from 'prom-client'
import { findOperator, isLocalCall } from './operators.ts'

export interface ServedMetrics {
  /** For the port of the models: for keys with the scope `admin:read`, or direct calls from this machine. */
  readonly router: Router
  /** For a separate port, which needs no key: only direct calls from this machine get an answer. */
  readonly localApp: Express
}

/** @param isOpen whether the server serves other machines without authentication */
export function openMetrics(llm: Llm, isOpen: boolean): ServedMetrics {
  const registry = new Registry()
  registerMetrics(llm, registry)
  const router = metricsRouter(llm, { registry, ...(isOpen && { authenticate: findOperator }) })
  const refuseOthers: RequestHandler = (req, res, next) =>
    isLocalCall(req) ? next() : void res.status(403).json({ error: 'Only direct calls from this machine.' })
  const localApp = express()
    .disable('x-powered-by')
    .get('/metrics', refuseOthers, async (_req, res) => {
      res.set({ 'content-type': registry.contentType, 'cache-control': 'no-store' })
      res.end(await registry.metrics())
    })
  return { router, localApp }
}
