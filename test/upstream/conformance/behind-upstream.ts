/**
 * The conformance table with an upstream engine: the engine of each check is in a second app, which the app of the check
 * reaches over one of the APIs. As an operator would, the app names the models with their context sizes and capabilities.
 */
import { cpSync } from 'node:fs'
import { createLlm, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { type ApiName, type UpstreamModelOptions, upstreamEngine } from '@modelmount/core/upstream'
import { onTestFinished } from 'vitest'
import { conformanceSuite, hostApp } from '../../conformance/suite.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { runLog } from '../../support/run-log.ts'
import { type NotCarried, reasonsByRow } from './not-carried.ts'

/** @param notCarried rows that must fail over this API */
export function upstreamConformance(api: ApiName, notCarried: NotCarried): void {
  conformanceSuite(
    "Node's own server",
    (llm, { authenticate, unknownRoutes, cloudRoutes, llamaServerRoutes, prefix }) =>
      toNodeHandler(routesFor(undefined, { cloudRoutes, llamaServerRoutes }), llm, {
        ...{ prefix, authenticate },
        ...(unknownRoutes !== 'error' && { fallback: hostApp }),
      }),
    reasonsByRow(notCarried),
    'all',
    (engine, models) => putBehind(api, engine, models),
  )
}

async function putBehind(api: ApiName, engine: Engine, folder: string): Promise<Engine> {
  // The second app has a folder of its own, since some checks compare the files of the first.
  const models = emptyFolder()
  cpSync(folder, models, { recursive: true, preserveTimestamps: true })
  const replica = await createLlm({
    ...{ engine, models, logger: runLog, store: { registries: [] } },
    scopes: ['inference', 'fleet'],
  })
  const { close, url } = await listen(toNodeHandler(routesFor(), replica))
  onTestFinished(async () => {
    await close()
    await replica.close()
  })
  if (api === 'modelmount') {
    const front = upstreamEngine({ url, api })
    await front.listModels?.()
    return front
  }
  const named: Record<string, UpstreamModelOptions> = {}
  for (const model of await replica.models.list()) {
    // Some checks have broken files.
    const details = await replica.models.details(model).catch(() => undefined)
    const { contextSize, capabilities = [] } = details ?? {}
    named[model.name] = { ...(contextSize && { contextSize }), capabilities }
  }
  const front = upstreamEngine({ url, api, models: named })
  // Reads the list of the server once, since some checks stop the clock.
  await front.listModels?.()
  return front
}
