/**
 * Global setup of a Vitest project: one PostgreSQL for all of its test files, which starts when the first of them
 * asks for it. The start takes seconds, so that one for each file would take minutes.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { hasPostgres, type RunningPostgres, startPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of a server that responds with the URL of PostgreSQL. */
    readonly sharedPostgres: string
  }
}

export default async function setUp({ provide }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!hasPostgres) return undefined
  let starting: Promise<RunningPostgres> | undefined
  const server = createServer((_request, response) => {
    starting ??= startPostgres()
    starting.then(
      ({ url }) => response.end(url),
      (cause: unknown) => response.writeHead(500).end(String(cause)),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  provide('sharedPostgres', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return async () => {
    server.closeAllConnections()
    server.close()
    await (await starting)?.stop()
  }
}
