import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { findSources } from './sources.ts'

const folder = emptyFolder()
mkdirSync(join(folder, 'other'))
for (const file of ['a.gguf', 'other/a.gguf', 'other/b.gguf', 'lora.gguf'])
  writeFileSync(join(folder, file), '')

test('a source that is not a file is the name of a model', async () => {
  expect(await findSources({ from: ['llama3.2'] }, folder)).toEqual({
    model: 'llama3.2',
    files: {},
    adapters: {},
  })
})

test('resolves files relative to the Modelfile, under unique names', async () => {
  const from = ['a.gguf', './other/a.gguf', join(folder, 'other/b.gguf')]

  expect(await findSources({ from }, folder)).toEqual({
    files: {
      'a.gguf': join(folder, 'a.gguf'),
      '1/a.gguf': join(folder, 'other/a.gguf'),
      'b.gguf': join(folder, 'other/b.gguf'),
    },
    adapters: {},
  })
})

test('an adapter may extend a named model', async () => {
  expect(await findSources({ from: ['tiny'], adapter: 'lora.gguf' }, folder)).toEqual({
    model: 'tiny',
    files: {},
    adapters: { 'lora.gguf': join(folder, 'lora.gguf') },
  })
})

test('recognises blobs as the shown Modelfile names them', async () => {
  const [model, projector, lora] = ['1', '2', '3'].map((digit) => digit.repeat(64))
  const shown = { from: [`sha256-${model}`, `sha256-${projector}`], adapter: `sha256-${lora}` }

  expect(await findSources(shown, folder)).toEqual({
    files: {
      [`sha256:${model}`]: `sha256:${model}`,
      [`sha256:${projector}`]: `sha256:${projector}`,
    },
    adapters: { [`sha256:${lora}`]: `sha256:${lora}` },
  })
})

test.each([
  [{ from: ['./missing.gguf'] }, 'FROM ./missing.gguf does not exist'],
  [{ from: ['missing.gguf'] }, 'FROM missing.gguf does not exist'],
  [{ from: ['/nowhere/model'] }, 'FROM /nowhere/model does not exist'],
  [{ from: ['./other'] }, 'FROM ./other is a folder: expected a GGUF file'],
  [{ from: ['tiny'], adapter: 'missing' }, 'ADAPTER missing does not exist'],
  [{ from: ['tiny'], adapter: 'other' }, 'ADAPTER other is a folder'],
  [{ from: ['tiny', 'a.gguf'] }, 'FROM: expected one model, or files'],
])('%j is an error that names the command', async (modelfile, expected) => {
  await expect(findSources(modelfile, folder)).rejects.toThrow(expected)
})
