/** Apps with the model routes, and how each of them closes while it serves. */
import { once } from 'node:events'
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { LLM, LlmModule } from '@modelmount/nest'
import { Module } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { onTestFinished } from 'vitest'
import { listen } from '../support/listen.ts'
import { type MountRoutes, mounts } from '../support/mounts.ts'

export interface ClosingApp {
  readonly llm: Llm
  readonly url: string
  /** Closes the app, whose calls have 20 s to end. */
  close(): Promise<void>
}

export type StartApp = (options: LlmOptions) => Promise<ClosingApp>

export const apps: Readonly<Record<string, StartApp>> = {
  ...Object.fromEntries(Object.entries(mounts).map(([name, mount]) => [name, closesServer(mount)])),
  'Nest on Express, with its own shutdown': (options) => startNest(options, new ExpressAdapter()),
  'Nest on Fastify, with its own shutdown': (options) => startNest(options, new FastifyAdapter()),
}

/** Starts an app on Node's server, which closes both as the pages recommend. */
export function closesServer(mount: MountRoutes): StartApp {
  return async (options) => {
    const llm = await createLlm(options)
    onTestFinished(() => llm.close())
    const { url, server, close } = await listen(mount(llm))
    onTestFinished(close)
    return {
      llm,
      url,
      close: async () => {
        const closed = once(server, 'close')
        server.close()
        await llm.close({ drain: '20s' })
        server.closeIdleConnections()
        await closed
      },
    }
  }
}

async function startNest(options: LlmOptions, adapter: AbstractHttpAdapter): Promise<ClosingApp> {
  class App {}
  Module({ imports: [LlmModule.forRoot({ ...options, shutdown: { drain: '20s' } })] })(App)
  const app = await NestFactory.create(App, adapter, { logger: false })
  onTestFinished(() => app.close())
  await app.listen(0, '127.0.0.1')
  return { llm: app.get<Llm>(LLM), url: await app.getUrl(), close: () => app.close() }
}
