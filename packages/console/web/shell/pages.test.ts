import { expect, test } from 'vitest'
import type { Scope } from '../api/scopes.ts'
import { homeFor, pagesFor } from './pages.ts'

const titles = (...scopes: Scope[]): readonly string[] => pagesFor({ scopes }).map(({ title }) => title)

test('Each scope shows its pages', () => {
  const operator = ['Overview', 'Live calls', 'Usage', 'Batches', 'Keys', 'Limits', 'Audit']

  expect(titles('admin:read')).toEqual(operator)
  expect(titles('admin')).toEqual(operator)
  expect(titles('inference')).toEqual(['Models', 'Playground', 'My key'])
  expect(titles('models')).toEqual(['Models'])
})

test.each<[Scope[], boolean, string]>([
  [['admin', 'inference'], true, '/overview'],
  [['admin', 'inference'], false, '/live'],
  [['inference'], true, '/my-key'],
  [['inference'], false, '/playground'],
  [['models'], true, '/models'],
])('viewers with %j and the database %s begin at %s', (scopes, hasDatabase, home) => {
  expect(homeFor({ scopes, hasDatabase })).toBe(home)
})
