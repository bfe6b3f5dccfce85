import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { environment, nodeOf, run } from '../packaging/npm.ts'
import { createProject, type ToolProject } from './project.ts'

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 130_000 })

let project: ToolProject

beforeAll(async () => {
  const nest = ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', '@nestjs/testing'] as const
  const tools = [
    ...(['express', 'jest', '@swc/jest', '@swc/core', 'supertest', 'reflect-metadata', 'rxjs'] as const),
    ...nest,
  ]
  project = await createProject('jest', ['express', 'nest'], tools, { type: 'module' })
}, 180_000)

afterAll(() => project.remove(), 60_000)

const configurations = [
  { config: 'swc.config.cjs', options: '', files: '.test.js', tests: 3 },
  { config: 'native.config.cjs', options: '--experimental-vm-modules', files: '.test.js', tests: 3 },
  { config: 'nest.config.cjs', options: '', files: '.spec.ts', tests: 2 },
]
const nodes = inject('isThorough') ? ['20', '22', '24'] : ['20']

test.each(nodes.flatMap((node) => configurations.map((one) => ({ node, ...one }))))(
  'Jest with $config on Node $node runs the tests of its app',
  async ({ node, config, options, files, tests }) => {
    const { folder } = project
    const program = await nodeOf(node, folder)
    const jest = join(folder, 'node_modules/jest/bin/jest.js')
    const print = ['-p', 'process.version']

    const version = await run(program, print, folder)
    const { stderr } = await run(program, [jest, '-c', config, files], folder, {
      ...environment,
      NODE_OPTIONS: options,
    })

    expect(version.stdout).toMatch(new RegExp(`^v${node}\\.`))
    expect(stderr).toContain(`Tests:       ${tests} passed, ${tests} total`)
  },
)
