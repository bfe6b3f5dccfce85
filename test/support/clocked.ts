/**
 * A model in the test process. Tests set the clock of its prompt cache and count the tokens that it
 * evaluates.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GenerateEvent } from '../../packages/core/src/engine/events.ts'
import type { Decoder } from '../../packages/core/src/engine/local/model-process/decoding/decoder.ts'
import { Scheduler } from '../../packages/core/src/engine/local/model-process/decoding/scheduler.ts'
import { SnapshotStore } from '../../packages/core/src/engine/local/model-process/kv-cache/snapshots.ts'
import { openDecoder } from '../../packages/core/src/engine/local/model-process/llama/addon-decoder.ts'
import { loadModel } from '../../packages/core/src/engine/local/model-process/llama/load.ts'
import type { RuntimeModel } from '../../packages/core/src/engine/local/model-process/model.ts'
import { runRequest } from '../../packages/core/src/engine/local/model-process/run-request.ts'
import type { GenerateRequest } from '../../packages/core/src/engine/request.ts'
import { config, surroundings } from './bindings.ts'
import { budgetOf } from './budgets.ts'
import { type Marked, readMarked } from './marked.ts'

export interface ClockedOptions {
  readonly modelPath?: string
  readonly contextSize?: number
  readonly parallel?: number
  readonly budgetBytes?: number
}

export interface Clocked {
  /** Time of the prompt cache, in ms. */
  now: number
  /** Number of evaluated tokens, of prompts and answers together. */
  evaluated: number
  /** How far each decoding step advances the clock, in ms. */
  stepMs: number
  ask(request: Omit<GenerateRequest, 'model'>, tenant?: string): Promise<Marked>
  /** Starts with an empty cache, like a new model process. */
  restart(): void
  /** Total size of all saved KV states, in bytes. */
  bytes(): number
  close(): void
}

export async function openClocked(options: ClockedOptions = {}): Promise<Clocked> {
  const { budgetBytes = 2 ** 28, ...wanted } = options
  const home = mkdtempSync(join(tmpdir(), 'clocked-'))
  const progress = { steps: 0 }
  let decoder: Decoder | undefined
  const loaded = await loadModel({ ...config, folder: home, ...wanted }, progress, (...inside) => {
    decoder = openDecoder(...inside)
    return decoder
  })

  let folder = ''
  let model: RuntimeModel | undefined
  const clocked: Clocked = {
    now: 1,
    evaluated: 0,
    stepMs: 0,
    async ask(request, tenant = 'ann') {
      const events: GenerateEvent[] = []
      const { signal } = new AbortController()
      const work = {
        model: model as RuntimeModel,
        ...surroundings,
        budget: budgetOf(),
        progress,
        tenant,
        weight: 1,
        background: false,
        signal,
      }
      await runRequest({ model: 'tiny', ...request }, work, (event) => events.push(event))
      return readMarked(events)
    },
    restart() {
      rmSync(folder, { recursive: true, force: true })
      folder = mkdtempSync(join(home, 'states-'))
      const snapshots = new SnapshotStore(folder, budgetBytes, { now: () => clocked.now })
      model = { ...loaded, runner: new Scheduler(decoder as Decoder, progress, snapshots) }
    },
    bytes: () => readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0),
    close: () => rmSync(home, { recursive: true }),
  }
  if (!decoder) throw new Error('The internals of node-llama-cpp have changed.')
  const decode = decoder.decode.bind(decoder)
  decoder.decode = (entries) => {
    clocked.evaluated += entries.reduce((sum, { tokens }) => sum + tokens.length, 0)
    clocked.now += clocked.stepMs
    return decode(entries)
  }
  clocked.restart()
  return clocked
}
