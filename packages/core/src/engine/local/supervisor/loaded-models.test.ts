import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LocalModelSettings } from '../load-settings.ts'
import type { LocalModel } from '../local-model.ts'
import { LoadedModels } from './loaded-models.ts'

/** Models without processes. Each is loaded at once and must stay for 5 s. */
vi.mock('../local-model.ts', () => {
  class InstantModel {
    readonly key: string
    readonly #onIdle: () => void
    readonly #readyAt = Date.now()
    #calls = 0
    #lastUsedAt = 0
    isLoaded = true

    constructor(key: string, _settings: unknown, _failures: unknown, onIdle: () => void) {
      this.key = key
      this.#onIdle = onIdle
    }

    get isBusy(): boolean {
      return this.#calls > 0
    }

    get lastUsedAt(): number {
      return this.isBusy ? Date.now() : this.#lastUsedAt
    }

    get evictionDelayMs(): number {
      return Math.max(0, this.#readyAt + 5_000 - Date.now())
    }

    async use(_model: unknown, _load: unknown, _signal: unknown, task: () => Promise<void>): Promise<void> {
      this.#calls++
      await task()
      this.#calls--
      this.#lastUsedAt = Date.now()
      this.#onIdle()
    }

    async release(): Promise<void> {
      this.isLoaded = false
      this.#onIdle()
    }

    close(): void {}
  }
  return { LocalModel: InstantModel, engineClosed: () => new Error('closed') }
})

let models: LoadedModels
let log: string[]

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  log = []
})

afterEach(() => {
  vi.useRealTimers()
})

const start = (maxModels: number): void => {
  models = new LoadedModels({} as LocalModelSettings, maxModels)
}

/** A call that ends when `task` ends. Its model is in the log once the call is admitted. */
function ask(
  key: string,
  task = async (): Promise<void> => {},
  signal = new AbortController().signal,
  isBackground = false,
) {
  const run = async (model: LocalModel): Promise<void> => {
    log.push(key)
    await (model.use as (...args: unknown[]) => Promise<void>)({}, {}, signal, task)
  }
  return models.use(key, signal, run, isBackground)
}

const askInBackground = (key: string) => ask(key, undefined, undefined, true)

const loaded = (): readonly string[] => models.all().map(({ key }) => key)
const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1_000)

test('a call for another model waits until the loaded one has served for its minimum time', async () => {
  start(1)
  await ask('a')
  const other = ask('b')

  await seconds(4.999)
  expect(log).toEqual(['a'])
  await seconds(0.001)
  await other

  expect(log).toEqual(['a', 'b'])
  expect(loaded()).toEqual(['b'])
})

test('meanwhile, calls of the loaded model enter, and do not make it stay longer', async () => {
  start(1)
  await ask('a')
  const other = ask('b')

  for (let call = 0; call < 4; call++) {
    await ask('a')
    await seconds(1)
  }
  expect(log).toEqual(['a', 'a', 'a', 'a', 'a'])
  await seconds(1)
  await other

  expect(log.at(-1)).toBe('b')
})

test('the least recently used model is waited for, even if another one could go at once', async () => {
  start(2)
  await ask('used')
  await seconds(5)
  await ask('new')
  await seconds(1)
  await ask('used')
  const other = ask('other')

  await seconds(3.9)
  await ask('used')
  expect(log).not.toContain('other')
  await seconds(0.1)
  await other

  expect(loaded()).toEqual(['used', 'other'])
})

test('two calls that wait for room get it in order, each after one minimum time', async () => {
  start(1)
  await ask('a')
  const waiting = [ask('b'), ask('c')]

  await seconds(5)
  expect(log).toEqual(['a', 'b'])
  await seconds(5)
  await Promise.all(waiting)

  expect(log).toEqual(['a', 'b', 'c'])
})

test('a busy model ends its calls first, and then admits no further ones', async () => {
  start(1)
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const running = ask('a', () => ended)
  const other = ask('b')
  await seconds(5)
  const late = ask('a')
  await seconds(60)
  expect(log).toEqual(['a'])

  end()
  await Promise.all([running, other])
  await seconds(5)
  await late

  expect(log).toEqual(['a', 'b', 'a'])
})

test('no timer is left when the waiting call has aborted', async () => {
  start(1)
  await ask('a')
  const leaving = new AbortController()
  const other = ask('b', undefined, leaving.signal)
  expect(vi.getTimerCount()).toBe(1)

  leaving.abort()

  expect(await other).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})

test('close() rejects the waiting call, and leaves no timer', async () => {
  start(1)
  await ask('a')
  const other = ask('b')

  models.close()

  await expect(other).rejects.toThrow('closed')
  expect(vi.getTimerCount()).toBe(0)
})

test('a background call evicts a model only a minute after its last foreground call', async () => {
  start(1)
  await ask('a')
  await seconds(10)
  await ask('a')
  const background = askInBackground('b')

  await seconds(59.999)
  expect(log).toEqual(['a', 'a'])
  await seconds(0.001)
  await background

  expect(loaded()).toEqual(['b'])
})

test('a background call evicts a model of other background calls like any call', async () => {
  start(1)
  await askInBackground('a')
  const other = askInBackground('b')

  await seconds(5)
  await other

  expect(log).toEqual(['a', 'b'])
})

test('a background call evicts the model that only background calls have used, though it was used later', async () => {
  start(2)
  await ask('a')
  await seconds(1)
  await askInBackground('b')
  const other = askInBackground('c')

  await seconds(5)
  await other

  expect(loaded().toSorted()).toEqual(['a', 'c'])
})

test('foreground calls wait for no background call that arrived before them', async () => {
  start(1)
  await ask('a')
  const background = askInBackground('b')
  const foreground = ask('c')

  await seconds(5)
  await foreground
  expect(log).toEqual(['a', 'c'])

  await seconds(60)
  await background
  expect(log).toEqual(['a', 'c', 'b'])
})
