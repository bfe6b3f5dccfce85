import { expect, test } from 'vitest'
import { nameFlags, withFlags } from './flags.ts'

test.each([
  ['Expected `local.threads` to be 1', 'Expected `local.threads` (--threads) to be 1'],
  ["Expected `tiers['free'].weight` to be 1", "Expected `tiers['free'].weight` (--config) to be 1"],
  ['Expected `bodies.maxBytes`', 'Expected `bodies.maxBytes` (--config)'],
  [
    'It has no price. The operator can set one: option `prices` of createLlm(), or modelmount serve --prices.',
    'It has no price. The operator can set one: modelmount serve --prices.',
  ],
  [
    'Expected the option `database` or `prices` of createLlm()',
    'Expected the option `database` (--data) or `prices` (--prices)',
  ],
  [
    "Origin not allowed: https://a.example. In the app, allow it: createLlm({ origins: ['https://a.example'] }).",
    'Origin not allowed: https://a.example. Allow it: --origins https://a.example.',
  ],
  [
    "Direct calls only. In the app, set `auth: 'host'` of createLlm() and the option `authenticate` of the router.",
    'Direct calls only. To serve other callers, require API keys: --auth keys.',
  ],
  ['In the app, `local.contextSize` sets it.', '`local.contextSize` (--context) sets it.'],
  ['The field `stream` is unknown', 'The field `stream` is unknown'],
  ['Expected `$OLLAMA_KEEP_ALIVE`', 'Expected `$OLLAMA_KEEP_ALIVE`'],
])('%s', (text, expected) => {
  expect(withFlags(text)).toBe(expected)
  expect(withFlags(expected)).toBe(expected)
})

test.each([
  ['local', 'c.json: Expected `local.threads` (--threads)'],
  ['other', 'Expected `local.threads` (--threads)'],
])('names the file if it sets %s', (group, message) => {
  const rethrow = () =>
    nameFlags(new Error('Expected `local.threads`'), 'c.json', (option) => option.startsWith(group))

  expect(rethrow).toThrow(message)
})
