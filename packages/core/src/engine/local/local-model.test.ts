import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Model } from '../../models/model.ts'
import type { LocalModelSettings, ResolvedLoad } from './load-settings.ts'
import { LocalModel } from './local-model.ts'
import { Failures } from './supervisor/failures.ts'

/** Processes that are ready at once. */
vi.mock('./start-process.ts', () => ({
  startProcess: (
    _model: Model,
    { contextSize, identity, modelSettings }: ResolvedLoad,
    { keepAlive }: LocalModelSettings,
    { onReady }: { readonly onReady: () => void },
  ) => {
    const loaded = {
      ...{ name: 'any', digest: '', fingerprint: identity.fingerprint, contextSize, keepAlive },
      modelSettings,
      ...{ readyAt: performance.now(), cachedUntil: 0, isUnwanted: false },
      process: {
        ...{ id: 1, hasEnded: false, isWaitingForMemory: false, footprint: { contextSize } },
        ...{ ready: Promise.resolve({ notes: [] }), release: async () => {}, close: () => {} },
      },
    }
    onReady()
    return loaded
  },
}))

const file = { name: 'any', path: '/any.gguf', sizeBytes: 1, modifiedAt: new Date(0), digest: '' } as Model
const onIdle = vi.fn()
const never = { hasBegun: () => false }

const open = (check: () => Promise<void> = async () => {}): LocalModel => {
  const runtimeDir = { hasProcess: never.hasBegun }
  const settings = { load: {}, contextSize: 512, keepAlive: 'forever', reloadCooldown: 5_000 }
  const settingsOf = (name: string) => ({ parallel: name.length })
  const all = { ...settings, settingsOf, runtimeDir, check, isPooling: async () => false, warn: () => {} }
  return new LocalModel('any', all as unknown as LocalModelSettings, new Failures(), onIdle)
}

const use = (model: LocalModel, contextSize = 512, task = async (): Promise<void> => {}) =>
  model.use(file, { contextSize }, new AbortController().signal, task, never)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  onIdle.mockClear()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('a model stays before another one may evict it', () => {
  test('for the cooldown after its load', async () => {
    const model = open()

    await use(model)

    expect(model.evictionDelayMs).toBe(5_000)
    vi.advanceTimersByTime(4_000)
    expect(model.evictionDelayMs).toBe(1_000)
  })

  test('for the whole cooldown while its first load runs, but not after a load has failed', async () => {
    const checks: PromiseWithResolvers<void>[] = []
    const model = open(() => {
      const check = withResolvers()
      checks.push(check)
      return check.promise
    })
    const calls = [use(model), use(model)]
    await vi.waitFor(() => expect(checks).toHaveLength(2))
    const before = model.evictionDelayMs

    checks[0]?.reject(new Error('broken'))
    await expect(calls[0]).rejects.toThrow('broken')

    expect([before, model.isBusy, model.evictionDelayMs]).toEqual([5_000, true, 0])
    expect(onIdle).toHaveBeenCalledOnce()
    checks[1]?.resolve()
    await calls[1]
    expect(model.evictionDelayMs).toBe(5_000)
  })

  test('no longer because it is reloaded', async () => {
    const model = open()
    await use(model)
    const reloading = use(model, 1_024)

    await vi.advanceTimersByTimeAsync(5_000)
    await reloading

    expect(model.loaded?.contextSize).toBe(1_024)
    expect(model.evictionDelayMs).toBe(0)
  })
})

test('while a model is loaded, its settings stay, even for calls under another name', async () => {
  const model = open()
  await use(model)

  await model.use({ ...file, name: 'other name' }, {}, new AbortController().signal, async () => {}, never)
  const before = model.loaded?.settings
  await model.release()
  await model.use({ ...file, name: 'other name' }, {}, new AbortController().signal, async () => {}, never)

  expect(before).toEqual({ parallel: 3 })
  expect(model.loaded?.settings).toEqual({ parallel: 10 })
})

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (cause: unknown) => void
}

function withResolvers(): PromiseWithResolvers<void> {
  let settle: Omit<PromiseWithResolvers<void>, 'promise'> | undefined
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...(settle as Omit<PromiseWithResolvers<void>, 'promise'>) }
}
