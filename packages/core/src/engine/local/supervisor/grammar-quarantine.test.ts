import { expect, test } from 'vitest'
import { GrammarQuarantine } from './grammar-quarantine.ts'

const grammar = (source: string) => ({ format: { type: 'grammar', source } as const })

test('rejects a grammar for ten minutes after it ended a process', async () => {
  let now = 0
  const quarantine = new GrammarQuarantine(() => now)
  await quarantine.add(grammar('root ::= "a"'))

  expect(() => quarantine.check(grammar('root ::= "a"'))).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param: 'format.source', issue: 'value' } }),
  )
  expect(() => quarantine.check(grammar('root ::= "b"'))).not.toThrow()
  now = 10 * 60_000
  expect(() => quarantine.check(grammar('root ::= "a"'))).not.toThrow()
})

test('ignores requests without a client grammar', async () => {
  const quarantine = new GrammarQuarantine()
  for (const request of [{}, { format: { type: 'json' } as const }]) {
    await quarantine.add(request)
    expect(() => quarantine.check(request)).not.toThrow()
  }
})

test('keeps the last thousand grammars', async () => {
  const quarantine = new GrammarQuarantine()
  for (let index = 0; index <= 1_000; index++) await quarantine.add(grammar(`root ::= "${index}"`))

  expect(() => quarantine.check(grammar('root ::= "0"'))).not.toThrow()
  expect(() => quarantine.check(grammar('root ::= "1"'))).toThrow()
})
