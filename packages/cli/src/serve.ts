/** `modelmount serve`: the Express adapter in a small app. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { isLoopback } from './host.ts'

export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly models?: string
  readonly model?: string
  readonly threads?: number
  readonly context?: number
}

/** So long running answers may take to end after SIGTERM or Ctrl-C. */
const drainMs = 10_000

export async function serve({ host, port, models, model, threads, context }: ServeOptions): Promise<void> {
  const paths = [model, models].filter((path) => path !== undefined)
  const llm = await createLlm({
    ...(paths.length > 0 && { models: paths }),
    local: { threads, contextSize: context },
  })
  const app = express()
    .disable('x-powered-by')
    .use(llmRouter(llm, { unknownRoutes: 'error' }))
  const server = app.listen(port, host)
  await once(server, 'listening')

  const { port: bound } = server.address() as AddressInfo
  print(`Listening on http://${host.includes(':') ? `[${host}]` : host}:${bound}`)
  if (!isLoopback(host)) print(`Warning: ${host} can be reached by others, and nobody is asked for a key.`)

  const drain = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    // A kept-alive connection becomes idle when its last answer ends, and would wait for another call.
    const sweep = setInterval(() => server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => server.closeAllConnections(), drainMs)
    await closed
    clearInterval(sweep)
    clearTimeout(deadline)
    await llm.close()
  }
  const stop = (): void => {
    // A second Ctrl-C does not wait.
    process.once('SIGINT', () => process.exit(130))
    void drain()
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`)
