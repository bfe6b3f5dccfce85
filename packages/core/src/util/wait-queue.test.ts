import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { WaitQueue } from './wait-queue.ts'

interface Entry {
  readonly name: string
}

/** First in, first out, with as many permits as the test sets. */
function createQueue(permits = 0) {
  const state = { permits }
  const admitted: string[] = []
  const queue = new WaitQueue<Entry>({
    select: (waiting) => (state.permits > 0 ? waiting[0] : undefined),
    admit: ({ name }) => {
      state.permits--
      admitted.push(name)
    },
  })
  const grant = (count: number): void => {
    state.permits += count
    queue.pump()
  }
  return { queue, admitted, grant }
}

const live = (): AbortSignal => new AbortController().signal

test('an entry that select chooses is admitted before wait returns', async () => {
  const { queue, admitted } = createQueue(1)

  const waiting = queue.wait({ name: 'a' }, live())

  expect(admitted).toEqual(['a'])
  expect(queue.size).toBe(0)
  expect(await waiting).toBe(true)
})

test('entries are admitted in the order that select chooses', async () => {
  const admitted: string[] = []
  let isOpen = false
  const queue = new WaitQueue<Entry>({
    select: (waiting) => (isOpen ? waiting.at(-1) : undefined),
    admit: ({ name }) => admitted.push(name),
  })
  const waits = ['a', 'b', 'c'].map((name) => queue.wait({ name }, live()))

  isOpen = true
  queue.pump()

  expect(admitted).toEqual(['c', 'b', 'a'])
  expect(await Promise.all(waits)).toEqual([true, true, true])
})

test('an entry with an aborted signal is not queued', async () => {
  const { queue, admitted } = createQueue(1)

  expect(await queue.wait({ name: 'a' }, AbortSignal.abort())).toBe(false)
  expect(admitted).toEqual([])
  expect(queue.size).toBe(0)
})

test('an entry that aborts while queued is never admitted', async () => {
  const { queue, admitted, grant } = createQueue()
  const aborting = new AbortController()
  const first = queue.wait({ name: 'a' }, aborting.signal)
  const second = queue.wait({ name: 'b' }, live())

  aborting.abort()
  grant(2)

  expect(await first).toBe(false)
  expect(await second).toBe(true)
  expect(admitted).toEqual(['b'])
})

test('an abort admits the entries that were blocked by the aborted entry', async () => {
  const admitted: string[] = []
  const queue = new WaitQueue<Entry>({
    select: ([head]) => (head?.name === 'blocked' ? undefined : head),
    admit: ({ name }) => admitted.push(name),
  })
  const aborting = new AbortController()
  void queue.wait({ name: 'blocked' }, aborting.signal)
  const behind = queue.wait({ name: 'free' }, live())
  expect(admitted).toEqual([])

  aborting.abort()

  expect(await behind).toBe(true)
  expect(admitted).toEqual(['free'])
})

test('an abort after admission changes nothing, and no listener remains on the signal', async () => {
  const { queue, grant } = createQueue(1)
  const aborting = new AbortController()
  await queue.wait({ name: 'a' }, aborting.signal)
  const second = queue.wait({ name: 'b' }, live())

  expect(getEventListeners(aborting.signal, 'abort')).toHaveLength(0)
  aborting.abort()
  grant(1)

  expect(await second).toBe(true)
})

test('admission may hand over and queue another entry', async () => {
  const admitted: string[] = []
  const waits: Promise<boolean>[] = []
  const queue: WaitQueue<Entry> = new WaitQueue<Entry>({
    select: ([head]) => head,
    admit: ({ name }) => {
      admitted.push(name)
      if (name === 'a') waits.push(queue.wait({ name: 'b' }, live()))
    },
  })

  waits.push(queue.wait({ name: 'a' }, live()))

  expect(admitted).toEqual(['a', 'b'])
  expect(await Promise.all(waits)).toEqual([true, true])
})

test('reject removes one entry, rejectAll the others', async () => {
  const { queue, admitted, grant } = createQueue()
  const entries = ['a', 'b', 'c'].map((name) => ({ name }))
  const aborting = new AbortController()
  const waits = entries.map((entry) => queue.wait(entry, aborting.signal))
  const outcomes = Promise.allSettled(waits)

  queue.reject(entries[1] as Entry, new Error('full'))
  expect(queue.waiting).toEqual([entries[0], entries[2]])
  queue.rejectAll(new Error('closed'))
  grant(3)

  expect((await outcomes).map((outcome) => outcome.status === 'rejected' && outcome.reason.message)).toEqual([
    'closed',
    'full',
    'closed',
  ])
  expect(admitted).toEqual([])
  expect(getEventListeners(aborting.signal, 'abort')).toHaveLength(0)
})
