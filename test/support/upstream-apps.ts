/** Two apps: the models of the first run in the second, which it reaches over one of the APIs. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { type ApiName, upstreamEngine } from '@modelmount/core/upstream'
import { emptyFolder } from './empty-folder.ts'
import { listen } from './listen.ts'

export interface UpstreamApps {
  /** The app that clients call. */
  readonly llm: Llm
  /** Its URL. */
  readonly url: string
  /** The engine of this app. */
  readonly engine: Engine
  /** The app that has the model. */
  readonly replica: Llm
  close(): Promise<void>
}

/** @param models folder with further models of the second app */
export async function startUpstreamApps(api: ApiName, models = emptyFolder()): Promise<UpstreamApps> {
  const replica = await createLlm({ models, local: { contextSize: 1_024 }, scopes: ['inference', 'fleet'] })
  const behind = await listen(toNodeHandler(routesFor(), replica))
  const engine = upstreamEngine({ url: behind.url, api })
  const llm = await createLlm({ models: emptyFolder(), engine })
  const front = await listen(toNodeHandler(routesFor(), llm))
  return {
    ...{ llm, engine, url: front.url, replica },
    close: async () => {
      await front.close()
      await llm.close()
      await behind.close()
      await replica.close()
    },
  }
}
