import { expect, test, vi } from 'vitest'
import { streamProgress } from './progress-stream.ts'

test('all intervals share one reaction to the end of the work', async () => {
  let finish = (): void => {}
  const ended = new Promise<void>((resolve) => {
    finish = resolve
  })
  const waiting = vi.spyOn(ended, 'then')
  const events = streamProgress(
    { status: 'pulling', totalBytes: 2 },
    { completedBytes: 1 },
    () => ended,
    AbortSignal.any([]),
  )

  for (let tick = 0; tick < 4; tick++)
    expect((await events.next()).value).toEqual({ status: 'pulling', totalBytes: 2, completedBytes: 1 })

  expect(waiting).toHaveBeenCalledTimes(1)
  finish()
  expect((await events.next()).value).toMatchObject({ completedBytes: 2 })
  expect(await events.next()).toMatchObject({ done: true })
})
