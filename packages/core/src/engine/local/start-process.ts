/** Starts the process of a model, or connects to a running one. */
import { resolve } from 'node:path'
import type { Model } from '../../models/model.ts'
import { type LocalModelSettings, type ResolvedLoad, toLoadConfig } from './load-settings.ts'
import type { LoadedProcess } from './loaded-process.ts'
import { ProcessClient } from './supervisor/process-client.ts'

interface StartHandlers {
  /** Called when the load waits for memory. */
  readonly onMemoryWait: () => void
  readonly onReady: () => void
}

export function startProcess(
  model: Model,
  { contextSize, identity, modelSettings }: ResolvedLoad,
  settings: LocalModelSettings,
  { onMemoryWait, onReady }: StartHandlers,
): LoadedProcess {
  const { name, fingerprint } = identity
  const { keepAlive = settings.keepAlive } = modelSettings
  const { processFile, environment, runtimeDir, isPooling, warn, onModelEvent } = settings
  const startedAt = performance.now()
  const process = new ProcessClient({
    file: processFile,
    environment,
    runtimeDir,
    name,
    config: {
      modelPath: resolve(model.path),
      modelName: model.name,
      fingerprint,
      contextSize,
      adapters: model.adapters?.map(({ path, scale, sizeBytes }) => ({
        path: resolve(path),
        scale,
        sizeBytes,
      })),
      ...toLoadConfig(settings, modelSettings),
    },
    isPooling: () => isPooling(model),
    onMemoryWait,
    onWarning: (message) => warn(message, model.name),
    onCacheEvict: ({ reason, states, bytes }) =>
      onModelEvent({ type: 'cache-evict', model: model.name, reason, states, bytes }),
    onEnd: (type, reason) => {
      // A load that its callers have left is nothing that was loaded.
      if (loaded.readyAt === undefined && type !== 'crash') return
      const loadedMs = loaded.readyAt === undefined ? 0 : performance.now() - loaded.readyAt
      onModelEvent({ type, model: model.name, processId: process.id, reason, loadedMs })
    },
  })
  const loaded: LoadedProcess = {
    ...{ name: model.name, digest: model.digest, fingerprint, contextSize, modelSettings },
    ...{ process, keepAlive },
    ...{ readyAt: undefined, cachedUntil: 0, isUnwanted: false },
  }
  process.ready.then(
    ({ contextSize: actual, sizeBytes, gpuBytes, gpuLayers, notes }) => {
      for (const note of notes) warn(note, model.name)
      const isChosen = settings.isContextSizeChosen || contextSize !== settings.contextSize
      if (isChosen && actual < contextSize)
        warn(
          `The model "${model.name}" has a context of ${actual} tokens instead of ${contextSize}: it was trained for no more.`,
          model.name,
        )
      loaded.readyAt = performance.now()
      onModelEvent({
        ...{ type: 'load', model: model.name, processId: process.id, loadMs: loaded.readyAt - startedAt },
        ...{ contextSize: actual, sizeBytes, gpuBytes, gpuLayers, notes },
      })
      onReady()
    },
    () => {}, // Each caller handles the error.
  )
  return loaded
}
