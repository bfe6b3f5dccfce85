import { expect, test } from 'vitest'
import { CallerSubjects } from './caller-subjects.ts'

const subjects = new CallerSubjects({
  team: { tokensPerDay: 500, maxOutputTokens: 100, perEndUser: { requestsPerMinute: 2 } },
})
const ann = { id: 'ann', limits: { perEndUser: { requestsPerMinute: 5, concurrent: 1 } } }

test('the rate limits of a caller are those of its tier, without limits of answers and end users', () => {
  expect(subjects.of({ id: 'ann', tier: 'team' })).toEqual({
    id: 'caller:ann',
    limits: { tokensPerDay: 500 },
  })
  expect(subjects.of(ann)).toEqual({ id: 'caller:ann' })
})

test('own limits of end users replace those of the tier, and an empty set removes them', () => {
  const limitsOf = (perEndUser: object) =>
    subjects.endUserOf({ id: 'ann', tier: 'team', limits: { perEndUser } }, 'u')?.limits

  expect(subjects.endUserOf({ id: 'ann', tier: 'team' }, 'u')?.limits).toEqual({ requestsPerMinute: 2 })
  expect(limitsOf({ concurrent: 3 })).toEqual({ concurrent: 3 })
  expect(limitsOf({})).toBeUndefined()
  expect(subjects.endUserOf({ id: 'bob' }, 'u')).toBeUndefined()
})

test('each end user of each caller has a subject, whose id does not contain the id of the end user', () => {
  const longId = 'secret@example.com'.repeat(100_000)
  const ids = ['a', 'b', 'a:b', 'none', 'NUL \0', longId].map((user) => subjects.endUserOf(ann, user)?.id)
  const others = ['a', undefined].map((user) => subjects.endUserOf({ ...ann, id: 'ann:a' }, user)?.id)
  const shared = subjects.endUserOf(ann, undefined)?.id

  const all = [...ids, ...others, shared]
  expect(new Set(all).size).toBe(all.length)
  for (const id of ids) expect(id).toMatch(/^end-user:ann:[\w-]{43}$/)
})

test('calls without an end user share one subject', () => {
  const shared = subjects.endUserOf(ann, undefined)

  expect(shared).toMatchObject({ limits: { requestsPerMinute: 5, concurrent: 1 } })
  expect(subjects.endUserOf(ann, '')).toEqual(shared)
})

test('the id of an end user may be a number', () => {
  expect(subjects.endUserOf(ann, 0 as unknown as string)).toEqual(subjects.endUserOf(ann, '0'))
})
