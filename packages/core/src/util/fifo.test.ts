import { expect, test } from 'vitest'
import { Fifo } from './fifo.ts'

test('returns items in the order they were pushed, and undefined when it is empty', () => {
  const items = new Fifo<number>()
  const read: (number | undefined)[] = []

  items.push(1)
  items.push(2)
  read.push(items.shift())
  items.push(3)
  read.push(items.shift(), items.shift(), items.shift())

  expect(read).toEqual([1, 2, 3, undefined])
  expect(items.size).toBe(0)
})

test('keeps the order through long runs of pushes and shifts', () => {
  const items = new Fifo<number>()
  const read: (number | undefined)[] = []
  let pushed = 0
  // The list grows to 1,000 items, shrinks, and grows again.
  for (let round = 0; round < 4; round++) {
    for (let count = 0; count < 1_000; count++) items.push(pushed++)
    for (let count = 0; count < 900; count++) read.push(items.shift())
  }

  expect(items.size).toBe(400)
  while (items.size > 0) read.push(items.shift())

  expect(read).toEqual(Array.from({ length: 4_000 }, (_, index) => index))
})

test('a cleared list is empty and can be used again', () => {
  const items = new Fifo<number>()
  for (let item = 0; item < 100; item++) items.push(item)

  items.clear()
  const cleared = [items.size, items.shift()]
  items.push(7)

  expect(cleared).toEqual([0, undefined])
  expect(items.shift()).toBe(7)
})

test('shifting a long list takes about as long per item as shifting a short one', () => {
  const shiftAll = (size: number): number => {
    const items = new Fifo<object>()
    for (let item = 0; item < size; item++) items.push({})
    const startedAt = performance.now()
    while (items.shift());
    return (performance.now() - startedAt) / size
  }
  shiftAll(1_000)

  // With `Array.shift`, 200,000 items take minutes: each shift moves all others.
  expect(shiftAll(200_000)).toBeLessThan(0.005)
})
