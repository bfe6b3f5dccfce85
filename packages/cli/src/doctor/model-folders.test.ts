import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { noiseModel } from '../../../../test/support/models.ts'
import { checkModelFolders } from './model-folders.ts'

const root = emptyFolder()
let count = 0
let folder: string

beforeEach(() => {
  folder = join(root, `${++count}`)
  mkdirSync(folder)
})

const check = async (memoryBytes?: number) => {
  const findings = await checkModelFolders({ models: folder }, memoryBytes)
  return findings.map(({ status, message, fix }) => [status, message, fix])
}

function writeManifest(name: string, text: string): void {
  const path = join(folder, 'manifests/registry.ollama.ai/library', name)
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'latest'), text)
}

test('a folder with a model is ok, and an empty one is a warning with a pull', async () => {
  expect((await check()).at(-1)).toEqual([
    'warning',
    'Only the built-in model was found.',
    'modelmount pull llama3.2',
  ])
  copyFileSync(noiseModel, join(folder, 'noise.gguf'))
  expect((await check()).map(([status]) => status)).toEqual(['ok', 'ok'])
  expect((await check()).at(-1)).toEqual(['ok', '1 model found', undefined])
})

test('a damaged manifest and missing files are problems with the pull that mends them', async () => {
  writeManifest('broken', '{')
  const digest = `sha256:${'0'.repeat(64)}`
  const layer = { mediaType: 'application/vnd.ollama.image.model', digest, size: 5 }
  writeManifest(
    'partial',
    JSON.stringify({ schemaVersion: 2, config: { ...layer, mediaType: 'x' }, layers: [layer] }),
  )

  expect((await check()).slice(1)).toEqual([
    [
      'problem',
      'The manifest of broken:latest is damaged.',
      'modelmount rm broken:latest; modelmount pull broken:latest',
    ],
    ['problem', 'Files of partial:latest are missing.', 'modelmount pull partial:latest'],
  ])
})

test('a file that is no model is a problem, and a model that exceeds the memory is a warning', async () => {
  writeFileSync(join(folder, 'text.gguf'), 'no model')
  copyFileSync(noiseModel, join(folder, 'noise.gguf'))

  const findings = await check(100_000)

  expect(findings).toContainEqual([
    'problem',
    expect.stringContaining('text:latest cannot be used'),
    expect.any(String),
  ])
  expect(findings).toContainEqual([
    'warning',
    expect.stringContaining('noise:latest has'),
    'modelmount rm noise:latest',
  ])
})

test('a folder that does not exist is a problem', async () => {
  const models = join(folder, 'missing folder')

  expect(await checkModelFolders({ models }, undefined)).toEqual([
    { check: 'models', status: 'problem', message: `${models} does not exist.`, fix: `mkdir -p '${models}'` },
  ])
})
