/** Files that an app loads at start, in a project with the packed packages and only their dependencies. */
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment, pack, root, run } from './npm.ts'

const app = join(root, 'test/packaging/app')
let project: string
let core: string

beforeAll(async () => {
  project = await realpath(await mkdtemp(join(tmpdir(), 'start-')))
  core = await unpacked('core')
  await unpacked('express')
  const { dependencies } = JSON.parse(await readFile(join(core, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), 'express']) {
    const link = join(project, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(root, 'node_modules', name), link)
  }
}, 60_000)

afterAll(() => rm(project, { recursive: true }))

test('core loads at most 13 files at start, from nanoid, path-to-regexp and itself', async () => {
  const files = await loadedBy(`import '@modelmount/core'`)

  expect([...new Set(files.map(packageOf))].sort()).toEqual(['@modelmount/core', 'nanoid', 'path-to-regexp'])
  expect(files.length).toBeLessThanOrEqual(13)
})

test('the Express adapter loads at most 17 files besides those of Express', async () => {
  const framework = await loadedBy(`import 'express'`)

  const files = await loadedBy(`import '@modelmount/express'`)

  expect(files.filter((file) => !framework.includes(file)).length).toBeLessThanOrEqual(17)
})

test('the bundle of core contains the license of zod, and no translations of zod', async () => {
  const dist = join(core, 'dist')
  const scripts = (await readdir(dist, { recursive: true })).filter((file) => file.endsWith('.js'))

  const code = (await Promise.all(scripts.map((file) => readFile(join(dist, file), 'utf8')))).join('\n')

  expect(new Set(Array.from(code.matchAll(/zod\/v4\/locales\/(\w+)/g), ([, name]) => name))).toEqual(
    new Set(['en']),
  )
  expect(await readFile(join(dist, 'LICENSE.zod'), 'utf8')).toContain('Permission is hereby granted')
})

test('bundled and unbundled core respond with the same validation errors', async () => {
  await cp(join(app, 'wrong-requests.mjs'), join(project, 'wrong-requests.mjs'))

  const { stdout } = await run(process.execPath, ['wrong-requests.mjs'], project)

  const { stdout: before } = await run(process.execPath, ['wrong-requests.mjs'], app)
  expect(JSON.parse(stdout)).toEqual(JSON.parse(before))
})

/** Packs a package and unpacks it in the project. Returns its folder. */
async function unpacked(name: string): Promise<string> {
  const [tarball] = (await pack([name], project)) as [string]
  const folder = join(project, 'node_modules/@modelmount', name)
  await mkdir(folder, { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', folder], project)
  return folder
}

/** Runs code in Node, and returns the loaded files below `node_modules`. */
async function loadedBy(code: string): Promise<readonly string[]> {
  const folder = await mkdtemp(join(project, 'coverage-'))
  await run(process.execPath, ['--input-type=module', '--eval', code], project, {
    ...environment,
    NODE_V8_COVERAGE: folder,
  })
  const [report] = (await readdir(folder)) as [string]
  const { result } = JSON.parse(await readFile(join(folder, report), 'utf8')) as { result: { url: string }[] }
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'))
  return files.map((url) => fileURLToPath(url)).filter((file) => file.includes('node_modules'))
}

const packageOf = (file: string): string => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? file
