import fc from 'fast-check'
import { expect, test } from 'vitest'
import { displayName, expectStorable, type ModelName, nameKey, parseModelName } from './name.ts'

const host = 'registry.ollama.ai'

test.each([
  ['llama3.2', { host, namespace: 'library', model: 'llama3.2', tag: 'latest' }],
  ['mike/mist:7b', { host, namespace: 'mike', model: 'mist', tag: '7b' }],
  ['hf.co/a/B-GGUF:Q4_K_M', { host: 'hf.co', namespace: 'a', model: 'B-GGUF', tag: 'Q4_K_M' }],
  ['host:5000/ns/m', { host: 'host:5000', namespace: 'ns', model: 'm', tag: 'latest' }],
  ['http://host:5000/ns/m:1', { host: 'host:5000', namespace: 'ns', model: 'm', tag: '1' }],
  ['  tiny\n', { host, namespace: 'library', model: 'tiny', tag: 'latest' }],
  ['_x', { host, namespace: 'library', model: '_x', tag: 'latest' }],
])('%j is split into its parts', (text, parts) => {
  expect(parseModelName(text)).toEqual(parts)
})

test.each([
  ['tiny:local', 'tiny:latest'],
  ['x:8b:local', 'x:8b'],
  ['x:8b:LOCAL', 'x:8b'],
  ['tiny:cloud', 'tiny:cloud'],
  ['x:8b-cloud', 'x:8b-cloud'],
  ['REGISTRY.ollama.ai/Library/Tiny', 'Tiny:latest'],
  ['registry.ollama.ai/mike/tiny', 'mike/tiny:latest'],
  ['https://registry.ollama.ai/library/tiny:8b', 'tiny:8b'],
  ['hf.co/library/tiny', 'hf.co/library/tiny:latest'],
])('%j is shown as %j', (text, shown) => {
  const name = parseModelName(text)

  expect(name && displayName(name)).toBe(shown)
})

test.each([
  ...['', ' ', ':', '/', ':local', '.hidden', '-x', 'a b', 'café', 'x:', 'x::8b', '/x', 'a//b', '//b', 'x/'],
  ...['a/b/c/d', 'localhost:5000/m', 'a.b/m', 'http://m', 'http:///a/m', '@/a/b', 'x@sha256:00', 'x\0'],
  ...['x'.repeat(81), `x:${'y'.repeat(81)}`, `${'n'.repeat(81)}/x`, `${'h'.repeat(351)}/n/x`],
])('%j is no name', (text) => {
  expect(parseModelName(text)).toBeUndefined()
})

test('parts can have their maximum length', () => {
  const text = `${'h'.repeat(350)}/${'n'.repeat(80)}/${'m'.repeat(80)}:${'t'.repeat(80)}`

  const name = parseModelName(text)

  expect(name && displayName(name)).toBe(text)
})

test('names that differ in case are equal', () => {
  const [upper, lower] = ['HF.co/A/B:C', 'hf.co/a/b:c'].map(parseModelName)

  expect(upper && nameKey(upper)).toBe(lower && nameKey(lower))
})

/** Text that is often almost a name. */
const nearly = fc
  .array(fc.constantFrom('a', 'B', '8', '_', '-', '.', ':', '/', '://', ' ', ':local', ':cloud', 'é'))
  .map((pieces) => pieces.join(''))

test('any text parses to a name or undefined, and the display name parses to the same name', () => {
  const anyText = fc.oneof(nearly, fc.string({ unit: 'binary' }))

  fc.assert(
    fc.property(anyText, (text) => {
      const name = parseModelName(text)
      if (!name) return
      const again = parseModelName(displayName(name))
      expect(again && nameKey(again)).toBe(nameKey(name))
    }),
    { numRuns: 2_000 },
  )
})

test.each([':local', ':', '/', '://', ' '])('a megabyte of %j is rejected fast', (piece) => {
  const startedAt = performance.now()

  const name = parseModelName(`${piece.repeat(1_000_000)}x`)

  expect(name).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(200)
})

test.each([
  ['host:5000/ns/m', 'host:5000'],
  ['CON', 'CON'],
  ['ns/x:nul.1', 'nul.1'],
  ['com1/x', 'com1'],
  ['x:v1.', 'v1.'],
])('Windows cannot store %j, because of %j', (text, part) => {
  const name = parseModelName(text) as ModelName

  expect(() => expectStorable(name, 'win32')).toThrow(`no folder there can be named "${part}"`)
  expect(() => expectStorable(name, 'linux')).not.toThrow()
  expect(() => expectStorable(name, 'darwin')).not.toThrow()
})

test('Windows can store other names', () => {
  for (const text of ['tiny', 'console', 'hf.co/a/B-GGUF:Q4_K_M', 'com10x/nullable:v1.0'])
    expect(() => expectStorable(parseModelName(text) as ModelName, 'win32')).not.toThrow()
})
