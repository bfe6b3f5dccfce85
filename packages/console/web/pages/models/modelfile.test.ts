import { expect, test } from 'vitest'
import { toCreateBody } from './modelfile.ts'

const digest = 'a'.repeat(64)

test('commands become fields of the request', () => {
  const source =
    'FROM tiny\nSYSTEM """Be\nbrief."""\nPARAMETER temperature 0.5\nMESSAGE user Hi\nLICENSE MIT\n'

  expect(toCreateBody('brief', source)).toEqual({
    model: 'brief',
    from: 'tiny',
    system: 'Be\nbrief.',
    parameters: { temperature: 0.5 },
    messages: [{ role: 'user', content: 'Hi' }],
    license: ['MIT'],
  })
})

test('blobs, which shown Modelfiles name, become files', () => {
  expect(toCreateBody('copy', `FROM sha256-${digest}\nADAPTER sha256-${digest}\n`)).toMatchObject({
    files: { 'file-0.gguf': `sha256:${digest}` },
    adapters: { 'file-0.gguf': `sha256:${digest}` },
  })
})

test.each([
  ['SYSTEM Hi\n', 'no FROM line'],
  ['FROM tiny\nFORM x\n', '(line 2): command must be one of'],
  ['FROM ./model.gguf\n', 'FROM ./model.gguf: expected a model of this app.'],
  ['FROM tiny\nDRAFT small\n', 'DRAFT: draft models are not supported.'],
])('%j is rejected: %s', (source, message) => {
  expect(() => toCreateBody('x', source)).toThrow(message)
})
