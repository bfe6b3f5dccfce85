/** Version 7 of the AI SDK, which needs Node 22, in a folder outside this workspace. */
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyProject, environment, nodeOf, root, run } from '../packaging/npm.ts'
import { encoderModel } from '../support/models.ts'
import { expectedReal, expectedScripted } from './expected.ts'
import { mockSituations } from './same-as-mock.mjs'

const expected = { ...expectedScripted(7), ...expectedReal }
const files = ['run.mjs', 'same-as-mock.mjs', 'situations.mjs', 'types.ts']
let folder: string
let project: string
let node: string
let printed: { readonly node: string; readonly results: Readonly<Record<string, unknown>> }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ai-sdk-7-'))
  const models = join(folder, 'models')
  await mkdir(models)
  await cp(encoderModel, join(models, 'encoder.gguf'))
  project = join(folder, 'project')
  const install = emptyProject(project, { type: 'module' }, ['ai@7', 'zod@4', '@types/node@22'])
  node = await nodeOf('22', folder)
  await install
  await mkdir(join(project, 'node_modules/@modelmount'))
  for (const name of ['ai-sdk', 'core', 'tiny-model'])
    await symlink(join(root, 'packages', name), join(project, 'node_modules/@modelmount', name))
  for (const file of files) await cp(join(root, 'test/ai-sdk', file), join(project, file))
  const env = { ...environment, XDG_RUNTIME_DIR: await mkdtemp(join(folder, 'run-')) }
  printed = JSON.parse((await run(node, ['run.mjs', models], project, env)).stdout)
}, 130_000)

afterAll(() => rm(folder, { recursive: true, force: true }), 60_000)

test('the situations ran with Node 22', () => {
  expect(printed.node).toMatch(/^v22\./)
  expect(Object.keys(printed.results).sort()).toEqual(
    [...Object.keys(expected), ...Object.keys(mockSituations)].sort(),
  )
})

test.each(Object.keys(expected))('%s', (name) => {
  expect(printed.results[name]).toEqual(expected[name])
})

describe('beside the mock model of version 7', () => {
  test.each(Object.keys(mockSituations))('%s', (name) => {
    const { ours, mock } = printed.results[name] as { readonly ours: unknown; readonly mock: unknown }

    expect(ours).toBeDefined()
    expect(ours).toEqual(mock)
  })
})

test('an app in strict TypeScript compiles', async () => {
  const compilerOptions = {
    module: 'NodeNext',
    target: 'ES2023',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  }
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, files: ['types.ts'] }),
  )

  const { stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], project)

  expect(stdout).toBe('')
}, 60_000)
