import { expect, test } from 'vitest'
import { GrammarQuarantine } from './grammar-quarantine.ts'

const grammar = (source: string) => ({ format: { type: 'grammar', source } as const })

test('a grammar that a process ended with is refused for ten minutes', () => {
  let now = 0
  const suspects = new GrammarQuarantine(() => now)
  suspects.add(grammar('root ::= "a"'))

  expect(() => suspects.check(grammar('root ::= "a"'))).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param: 'format.source', issue: 'value' } }),
  )
  expect(() => suspects.check(grammar('root ::= "b"'))).not.toThrow()
  now = 10 * 60_000
  expect(() => suspects.check(grammar('root ::= "a"'))).not.toThrow()
})

test('only grammars of users are', () => {
  const suspects = new GrammarQuarantine()
  for (const request of [{}, { format: { type: 'json' } as const }]) {
    suspects.add(request)
    expect(() => suspects.check(request)).not.toThrow()
  }
})

test('a thousand are remembered', () => {
  const suspects = new GrammarQuarantine()
  for (let index = 0; index <= 1_000; index++) suspects.add(grammar(`root ::= "${index}"`))

  expect(() => suspects.check(grammar('root ::= "0"'))).not.toThrow()
  expect(() => suspects.check(grammar('root ::= "1"'))).toThrow()
})
