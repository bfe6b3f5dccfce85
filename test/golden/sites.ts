/** The servers of the recording: one without models, one that creates models, and one that pulls them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { listen } from '../support/listen.ts'
import type { Exchange } from './recording.ts'
import { deadRegistry, registryOf } from './registry.ts'

export interface Sites {
  urlOf(exchange: Exchange): string
  /** Host and port of the registry for pulls. */
  readonly registry: string
  close(): Promise<void>
}

export async function openSites(): Promise<Sites> {
  const made = await openSite()
  const registry = await registryOf(made.folder)
  const { host } = new URL(registry.url)
  const empty = await openSite()
  const pulling = await openSite(host)
  const all = [made, empty, pulling]
  return {
    registry: host,
    urlOf: ({ id }) => {
      const number = Number.parseInt(id, 10)
      if (number < 500) return empty.url
      return number > 1_400 && number < 1_500 ? pulling.url : made.url
    },
    close: async () => {
      await Promise.all([registry, ...all].map((one) => one.close()))
    },
  }
}

async function openSite(registry = deadRegistry) {
  const folder = mkdtempSync(join(tmpdir(), 'golden-'))
  const llm = await createLlm({
    models: folder,
    scopes: ['inference', 'models'],
    store: { registries: [], privateRegistries: [registry] },
  })
  const server = await listen(toNodeHandler(routesFor(undefined, { cloudRoutes: true }), llm))
  return {
    folder,
    url: server.url,
    close: async () => {
      await server.close()
      await llm.close()
      rmSync(folder, { recursive: true, maxRetries: 5 })
    },
  }
}
