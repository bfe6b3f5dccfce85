import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { type SlotMatch, type SlotRequest, Slots } from './slots.ts'

const chunkSize = 8
const tokens = (length: number, first = 0): Token[] =>
  Array.from({ length }, (_, index) => (first + index) as Token)
const wish = (prompt: readonly Token[], more: Partial<SlotRequest> = {}): SlotRequest => ({
  prompt,
  tenant: 'ann',
  isDeterministic: false,
  pieceEnds: [],
  ...more,
})

/** Fills a slot like the scheduler. */
function use(slots: Slots, prompt: readonly Token[], more: Partial<SlotRequest> = {}, clean = 0): number {
  const place = slots.acquire(wish(prompt, more))
  if (!place) throw new Error('There is no slot.')
  place.slot.tokens = [...prompt]
  place.slot.deterministicLength = clean
  slots.release(place.slot)
  return place.slot.id
}

test('takes the first empty slot, and none while all are busy', () => {
  const slots = new Slots(2, chunkSize, () => true)

  const taken = [1, 2, 3].map((first) => slots.acquire(wish(tokens(20, first * 100)))?.slot.id)

  expect(taken).toEqual([0, 1, undefined])
})

test('takes the slot with the longest match, and evaluates at least one token again', () => {
  const slots = new Slots(3, chunkSize, () => true)
  use(slots, tokens(20))
  slots.acquire(wish(tokens(20, 500)))
  use(slots, tokens(30))

  const longer = slots.acquire(wish(tokens(40)))
  expect([longer?.slot.id, longer?.matchLength]).toEqual([0, 30])

  if (longer) slots.release(longer.slot)
  expect(slots.acquire(wish(tokens(30)))?.matchLength).toBe(29)
})

test('does not take the slot of another prompt for a short match', () => {
  const slots = new Slots(2, chunkSize, () => true)
  use(slots, tokens(40))

  const place = slots.acquire(wish([...tokens(10), ...tokens(30, 900)]))

  expect([place?.slot.id, place?.matchLength]).toEqual([1, 0])
})

test('takes the least recently used slot where none is empty', () => {
  const slots = new Slots(2, chunkSize, () => true)
  use(slots, tokens(20, 100))
  use(slots, tokens(20, 200))
  use(slots, tokens(20, 100))

  expect(slots.acquire(wish(tokens(20, 300)))?.slot.id).toBe(1)
})

test('gives neighbouring slots of the less recently used half to prompts that start together', () => {
  const slots = new Slots(8, chunkSize, () => true)
  for (let first = 1; first <= 8; first++) use(slots, tokens(20, first * 100))
  // From the least to the most recently used: 6, 7, 0, 1, 2, 3, 4, 5.
  for (let first = 1; first <= 6; first++) use(slots, tokens(20, first * 100))

  const taken = [1, 2, 3, 4].map((index) => slots.acquire(wish(tokens(20, index * 1_000)))?.slot.id)

  expect(taken).toEqual([0, 1, 2, 3])
})

test('keeps the last prompt of a caller, however many others come', () => {
  const slots = new Slots(10, chunkSize, () => true)
  for (let first = 1; first <= 10; first++) use(slots, tokens(20, first * 100))
  const running = [1, 2, 3, 4].map((index) => slots.acquire(wish(tokens(20, index * 1_000))))
  const [last] = running.slice(-1)
  if (!last) throw new Error('There is no slot.')
  last.slot.tokens = tokens(20, 4_000)
  slots.release(last.slot)

  const others = [5, 6].map((index) => slots.acquire(wish(tokens(20, index * 1_000)))?.slot.id)

  expect(others).not.toContain(last.slot.id)
  expect(slots.acquire(wish(tokens(30, 4_000)))?.matchLength).toBe(20)
})

test('keeps a long prompt rather than take a neighbouring slot', () => {
  const slots = new Slots(4, chunkSize, () => true)
  for (const first of [1_000, 2_000, 3_000, 4_000]) use(slots, tokens(100, first))

  const taken = [100, 200].map((first) => slots.acquire(wish(tokens(20, first)))?.slot.id)
  expect(taken).toEqual([0, 1])

  const other = new Slots(4, chunkSize, () => true)
  for (const first of [1_000, 2_000, 3_000, 4_000]) use(other, tokens(100, first))
  use(other, tokens(100, 2_000))

  expect([100, 200].map((first) => other.acquire(wish(tokens(20, first)))?.slot.id)).toEqual([0, 2])
})

test('shares no tokens between tenants', () => {
  const slots = new Slots(1, chunkSize, () => true)
  use(slots, tokens(20))

  expect(slots.acquire(wish(tokens(20), { tenant: 'ben' }))?.matchLength).toBe(0)
})

test('reuses only whole chunks for a deterministic request', () => {
  const slots = new Slots(1, chunkSize, () => true)
  use(slots, tokens(45), {}, 40)

  expect(slots.acquire(wish(tokens(60), { isDeterministic: true }))?.matchLength).toBe(40)
})

test('cuts the match of a deterministic request at the end of a chunk', () => {
  const slots = new Slots(1, chunkSize, () => true)
  use(slots, tokens(45), {}, 40)

  expect(
    slots.acquire(wish([...tokens(30), ...tokens(30, 900)], { isDeterministic: true }))?.matchLength,
  ).toBe(24)
})

test('reuses all or nothing of a sequence that cannot be truncated', () => {
  const slots = new Slots(1, chunkSize, () => false)
  use(slots, tokens(40), {}, 40)

  const cut = slots.acquire(wish([...tokens(39), ...tokens(20, 900)]))
  expect([cut?.slot.id, cut?.matchLength]).toEqual([0, 0])
  if (cut) slots.release(cut.slot)

  const whole = slots.acquire(wish(tokens(50), { isDeterministic: true }))
  expect([whole?.slot.id, whole?.matchLength]).toEqual([0, 40])
})

test('takes no slot for a match that is shorter than a snapshot', () => {
  const slots = new Slots(2, chunkSize, () => true)
  use(slots, tokens(40))
  const take = (saved: number) => {
    const place = slots.acquire(wish([...tokens(40), ...tokens(20, 900)]), saved)
    if (place) slots.release(place.slot)
    return [place?.slot.id, place?.matchLength]
  }

  expect(take(48)).toEqual([1, 0])
  expect(take(40)).toEqual([0, 40])
})

test('counts whole chunks of a prompt as deterministic, but not output and tokens after it', () => {
  const slots = new Slots(1, chunkSize, () => true)
  const { slot } = slots.acquire(wish(tokens(30))) as SlotMatch
  const cleanAfter = (change: () => void): number => {
    change()
    return slot.deterministicLength
  }

  expect(cleanAfter(() => slots.append(slot, tokens(16), true))).toBe(16)
  expect(cleanAfter(() => slots.append(slot, tokens(14, 16), true))).toBe(24)
  expect(cleanAfter(() => slots.append(slot, tokens(10, 30), false))).toBe(24)
  expect(cleanAfter(() => slots.truncate(slot, 20))).toBe(16)
  expect(cleanAfter(() => slots.append(slot, tokens(20, 500), true))).toBe(16)
  expect(slot.tokens).toEqual([...tokens(20), ...tokens(20, 500)])
})

test('counts pieces as deterministic for prompts with the same piece ends', () => {
  const slots = new Slots(1, chunkSize, () => true)
  const keep = (pieceEnds: readonly number[], prompt = tokens(60)): number => {
    const place = slots.acquire(wish(prompt, { isDeterministic: true, pieceEnds })) as SlotMatch
    slots.release(place.slot)
    return place.matchLength
  }
  const { slot } = slots.acquire(wish(tokens(45), { pieceEnds: [19] })) as SlotMatch
  for (const [from, to] of [
    [0, 8],
    [8, 16],
    [16, 19],
    [19, 24],
    [24, 40],
    [40, 45],
  ] as const)
    slots.append(slot, tokens(to - from, from), true, [19])
  slots.release(slot)

  expect([slot.deterministicLength, slot.pieceEnds]).toEqual([40, [19]])
  expect(keep([19])).toBe(40)
  expect(keep([19, 27])).toBe(24)
  expect(keep([])).toBe(16)
  expect(keep([19], [...tokens(22), ...tokens(20, 900)])).toBe(19)
  expect(keep([], [...tokens(22), ...tokens(20, 900)])).toBe(16)
})

test('reuses no more than the request allows', () => {
  const slots = new Slots(1, chunkSize, () => true)
  use(slots, tokens(40))

  expect(slots.acquire(wish(tokens(50), { maxReuse: 21 }))?.matchLength).toBe(21)
})

test('reports the previous tenant of a slot', () => {
  const slots = new Slots(1, chunkSize, () => true)
  use(slots, tokens(40))

  expect(slots.acquire(wish(tokens(50, 900), { tenant: 'ben' }))?.previousTenant).toBe('ann')
})

test('finds where a prompt diverges from the last prompt of the tenant', () => {
  const slots = new Slots(2, chunkSize, () => true)
  const divergence = (prompt: readonly Token[], tenant = 'ann') => slots.findDivergence({ prompt, tenant })
  const place = slots.acquire(wish(tokens(60))) as SlotMatch
  place.slot.tokens = tokens(70)
  place.slot.promptLength = 60
  slots.release(place.slot)

  expect(divergence([...tokens(30), ...tokens(40, 900)])).toBe(30)
  expect(divergence([...tokens(30), ...tokens(40, 900)], 'ben')).toBeUndefined()
  // The prompt extends the last prompt, or differs from it only near its end.
  expect(divergence(tokens(90))).toBeUndefined()
  expect(divergence([...tokens(55), ...tokens(40, 900)])).toBeUndefined()
  // The prompt is a prefix of the last prompt, or shares only 4 tokens with it.
  expect(divergence(tokens(40))).toBeUndefined()
  expect(divergence([...tokens(4), ...tokens(40, 900)])).toBeUndefined()
})

test.each(['append', 'endStep'] as const)(
  'the source and the copy of a slot are not taken before the next step: %s',
  (how) => {
    const slots = new Slots(2, chunkSize, () => true)
    const source = slots.acquire(wish(tokens(40)))?.slot
    if (!source) throw new Error('There is no slot.')
    slots.append(source, tokens(40), false)
    const match = slots.acquire(wish([...tokens(39), ...tokens(1, 900)], { minCopyLength: 16 }))
    if (!match?.copy) throw new Error('There is no copy.')
    expect([match.copy.source, match.copy.length]).toEqual([source, 39])
    slots.startCopy(source, match.slot)

    slots.release(source)
    const before = slots.acquire(wish(tokens(20, 500), { tenant: 'bob' }))
    if (how === 'append') slots.append(match.slot, tokens(1, 900), false)
    else slots.endStep()

    expect(before).toBeUndefined()
    expect(slots.acquire(wish(tokens(20, 500), { tenant: 'bob' }))?.slot).toBe(source)
  },
)
