import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { run } from '../packaging/npm.ts'
import { createProject, greet, greeting, start, type ToolProject } from './project.ts'

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 130_000 })

const nest = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  'reflect-metadata',
  'rxjs',
] as const
const webpack = ['webpack', 'webpack-cli', 'ts-loader', 'typescript'] as const
const isThorough = inject('isThorough')

/** Bundles need not contain these, which only `require()` can load. */
const requireBanner = `--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`

interface Bundle {
  readonly title: string
  readonly command: readonly string[]
  readonly file: string
}

const esbuildBundles: readonly Bundle[] = [
  {
    title: 'esbuild: a CommonJS bundle of all packages',
    command: ['esbuild', 'express-app.js', '--bundle', '--platform=node', '--format=cjs'],
    file: 'all.cjs',
  },
  {
    title: 'esbuild: an ESM bundle of all packages',
    command: ['esbuild', 'express-app.js', '--bundle', '--platform=node', '--format=esm', requireBanner],
    file: 'all.mjs',
  },
  {
    title: 'esbuild: an ESM bundle without packages',
    command: [
      'esbuild',
      'express-app.js',
      '--bundle',
      '--platform=node',
      '--format=esm',
      '--packages=external',
    ],
    file: 'app.mjs',
  },
]
const webpackBundles: readonly Bundle[] = [
  { title: 'webpack: a Nest app without packages', command: ['webpack'], file: 'nest-app.cjs' },
  {
    title: 'webpack: a Nest app with the packages of Modelmount',
    command: ['webpack', '-c', 'webpack.everything.config.cjs'],
    file: 'everything.cjs',
  },
]

let project: ToolProject

beforeAll(async () => {
  project = await createProject('bundlers', isThorough ? ['express', 'nest'] : ['express'], [
    'express',
    'esbuild',
    ...(isThorough ? [...nest, ...webpack] : []),
  ])
}, 180_000)

afterAll(() => project.remove(), 60_000)

describe.each(isThorough ? [...esbuildBundles, ...webpackBundles] : esbuildBundles)('$title', (bundle) => {
  test('is built without warnings, and answers with the built-in model', async () => {
    const { folder } = project
    const [tool = '', ...args] = bundle.command
    const outfile = tool === 'esbuild' ? [`--outfile=dist/${bundle.file}`] : []

    const { stdout, stderr } = await run(
      join(folder, 'node_modules/.bin', tool),
      [...args, ...outfile],
      folder,
    )
    const app = start(process.execPath, [join('dist', bundle.file)], folder)
    onTestFinished(() => app.stop())

    expect(stdout + stderr).not.toMatch(/\[?warning/i)
    expect(await greet(await app.nextAddress())).toBe(greeting)
  })
})

test('a bundle in another folder than the one in which it was built answers, too', async () => {
  const { folder } = project
  const elsewhere = join(folder, 'elsewhere')
  await mkdir(elsewhere)
  await rename(join(folder, 'dist/all.cjs'), join(elsewhere, 'all.cjs'))
  await writeFile(join(elsewhere, 'package.json'), '{}')

  const app = start(process.execPath, ['all.cjs'], elsewhere)
  onTestFinished(() => app.stop())

  expect(await greet(await app.nextAddress())).toBe(greeting)
})
