/**
 * The two servers that agents use: one with scripted models and a heartbeat before each chunk, and one with the built-in
 * model. The model `eager` calls every tool, each other one follows instructions.
 */
import { createLlm, type Llm } from '@modelmount/core'
import { type Script, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express, { type RequestHandler } from 'express'
import { listen } from '../../support/listen.ts'
import { withHeartbeats } from '../scripted-server.ts'
import { callTools } from './eager-model.ts'
import { followInstructions } from './instructed-model.ts'

export interface AgentServer {
  readonly url: string
  /** Responses with an error status: method, path, status and body. */
  readonly errors: string[]
  close(): Promise<void>
}

/** The routes are mounted at the root, and once more here. */
export const prefix = '/llm'

export async function serveInstructed(models: string): Promise<AgentServer> {
  const answer: Script = (request) =>
    request.model.startsWith('eager') ? callTools(request) : followInstructions(request)
  const engine = scriptedEngine(answer, { contextSize: 131_072 })
  return serve(
    await createLlm({ engine, models, auth: 'host', batches: { database: ':memory:' } }),
    withHeartbeats,
  )
}

export async function serveTiny(models: string): Promise<AgentServer> {
  const modelSettings = { tiny: { temperature: 0 } }
  return serve(await createLlm({ models, auth: 'host', local: { contextSize: 8_192 }, modelSettings }))
}

async function serve(llm: Llm, ...middleware: readonly RequestHandler[]): Promise<AgentServer> {
  const errors: string[] = []
  const recordErrors: RequestHandler = (req, res, next) => {
    const end = res.end.bind(res) as (...args: unknown[]) => typeof res
    res.end = (...args: unknown[]) => {
      if (res.statusCode >= 400)
        errors.push(`${req.method} ${req.originalUrl} ${res.statusCode} ${String(args[0] ?? '')}`)
      return end(...args)
    }
    next()
  }
  const router = llmRouter(llm, { authenticate: () => ({ id: 'ada' }) })
  const app = express()
    .set('trust proxy', 'loopback')
    .use(recordErrors, ...middleware)
  const { url, close } = await listen(app.use(prefix, router).use(router))
  return {
    url,
    errors,
    close: async () => {
      await close()
      await llm.close()
    },
  }
}
