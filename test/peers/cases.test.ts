import { expect, test } from 'vitest'
import { differences, leftOut } from './cases.ts'

test('each case that is left out or fails has a name and a reason, and is in one list', () => {
  for (const [name, reason] of Object.entries({ ...leftOut, ...differences })) {
    expect(name).toMatch(/^test_\w+\.py(::test_\w+(\[.*\])?)?$/s)
    expect(reason).not.toBe('')
  }
  const isLeftOut = (name: string): boolean =>
    Object.keys(leftOut).some(
      (one) => name === one || name.startsWith(`${one}::`) || name.startsWith(`${one}[`),
    )
  expect(Object.keys(differences).filter(isLeftOut)).toEqual([])
})
