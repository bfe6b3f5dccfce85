import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyProject, pack } from './npm.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sizes-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

test('core and the Express adapter take at most 12.5 MB on disk, without peer dependencies', async () => {
  const tarballs = await pack(['core', 'express'], folder)
  // With `--legacy-peer-deps`, npm does not install peer dependencies.
  const project = await emptyProject(join(folder, 'project'), {}, ['--legacy-peer-deps', ...tarballs])
  const installed = join(project, 'node_modules')

  const bytes = await onDisk(installed)

  process.stdout.write(`@modelmount/core and @modelmount/express: ${(bytes / 1e6).toFixed(1)} MB installed\n`)
  expect(await readdir(installed)).not.toContain('express')
  expect(await readdir(installed)).not.toContain('node-llama-cpp')
  expect(await readdir(join(installed, '@modelmount'))).toEqual(['core', 'express'])
  expect(bytes).toBeLessThanOrEqual(12_500_000)
}, 250_000)

/** Disk space of the files and folders in whole blocks, in bytes. */
async function onDisk(path: string): Promise<number> {
  const names = await readdir(path, { recursive: true })
  const stats = await Promise.all(['', ...names].map((name) => lstat(join(path, name))))
  return stats.reduce((sum, { blocks }) => sum + blocks * 512, 0)
}
