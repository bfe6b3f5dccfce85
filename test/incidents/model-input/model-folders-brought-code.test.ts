/**
 * B-10: an option loaded Python code from the repository of a model. D-12: helpers for tools and CORS fetched
 * any URL. Core can do neither, since it contains no way to it: this test reads its source.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../../packages', import.meta.url))
const packages = ['core', 'express', 'fastify', 'koa', 'nest']
const files = packages.flatMap((name) =>
  readdirSync(join(root, name, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => join(root, name, 'src', file)),
)

/** Files whose text, without comments, matches. */
const matching = (what: RegExp): readonly string[] =>
  files
    .filter((file) =>
      what.test(readFileSync(file, 'utf8').replaceAll(/\/\*.*?\*\/|(?<=^|\s)\/\/.*?$/gms, '')),
    )
    .map((file) => relative(root, file).replaceAll('\\', '/'))
    .sort()

test('the pattern for each rule finds what it forbids', () => {
  expect(files.length).toBeGreaterThan(200)
  expect(matching(/\bimport\('undici'\)/)).toEqual(['core/src/models/registry/guarded-fetch.ts'])
})

test('no code is built from text, and every import names its module', () => {
  expect(matching(/\beval\(|\bnew Function\(|node:vm|from 'vm'/)).toEqual([
    // The method of this name of Redis clients, which runs the script of the limits in Redis.
    'core/src/limits/redis/client.ts',
  ])
  expect(matching(/\bimport\((?!['"][\w@./:-]+['"]\))/)).toEqual([])
  expect(matching(/\brequire\(/)).toEqual([])
})

test('only model processes and their workers are started', () => {
  expect(matching(/node:child_process/)).toEqual([
    'core/src/engine/local/model-process/workers/bounded-worker.ts',
    'core/src/engine/local/supervisor/launch.ts',
    // Runs the program of the model processes, which then only reports the machine.
    'core/src/machine/inspect-machine.ts',
  ])
})

test('only the registry and the upstream engines send requests', () => {
  expect(
    matching(
      /(await|return|=|=>) fetch\(|globalThis\.fetch|https?\.(request|get)\(|(?<!{ errors } )from 'undici'|import\('undici'\)/,
    ),
  ).toEqual([
    // To the one server that the options of the app name.
    'core/src/engine/upstream/upstream-client.ts',
    'core/src/models/registry/guarded-fetch.ts',
  ])
})
