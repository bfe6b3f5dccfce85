import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ListedModel } from './upstream-api.ts'
import { UpstreamModels } from './upstream-models.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const start = (readList: () => Promise<readonly ListedModel[]>) =>
  new UpstreamModels({ identity: 'http://a', models: undefined }, readList)

test('calls get what the server has changed after a minute, and do not wait for it', async () => {
  let system = 'Old'
  const readList = vi.fn(async () => [
    { name: 'small', defaults: { system, parameters: {}, messages: [], license: [] } },
  ])
  const models = start(readList)
  const systemOf = async () => (await models.find('small'))?.defaults?.system
  expect(await systemOf()).toBe('Old')
  system = 'New'

  vi.advanceTimersByTime(59_000)
  expect(await systemOf()).toBe('Old')
  expect(readList).toHaveBeenCalledTimes(1)

  vi.advanceTimersByTime(2_000)
  expect(await systemOf()).toBe('Old')
  await vi.waitFor(async () => expect(await systemOf()).toBe('New'))
  expect(readList).toHaveBeenCalledTimes(2)
})

test('models stay known while the server is away', async () => {
  const readList = vi.fn<() => Promise<readonly ListedModel[]>>(async () => [{ name: 'small' }])
  const models = start(readList)
  await models.find('small')
  readList.mockRejectedValue(new Error('away'))
  vi.advanceTimersByTime(61_000)

  expect(await models.find('small')).toMatchObject({ name: 'small' })
  await vi.waitFor(() => expect(readList).toHaveBeenCalledTimes(2))
  expect(await models.find('small')).toMatchObject({ name: 'small' })
})
