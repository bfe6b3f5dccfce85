import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { environment, nodeOf, run } from '../packaging/npm.ts'
import { createProject, type ToolProject } from './project.ts'

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 130_000 })

let project: ToolProject

beforeAll(async () => {
  const tools = ['express', 'jest', '@swc/jest', '@swc/core', 'supertest'] as const
  project = await createProject('jest', ['express'], tools, { type: 'module' })
}, 180_000)

afterAll(() => project.remove(), 60_000)

const configurations = [
  { config: 'swc.config.cjs', options: '' },
  { config: 'native.config.cjs', options: '--experimental-vm-modules' },
]
const nodes = inject('isThorough') ? ['20', '22', '24'] : ['20']

test.each(nodes.flatMap((node) => configurations.map((one) => ({ node, ...one }))))(
  'Jest with $config on Node $node runs tests with a scripted engine and with the built-in model',
  async ({ node, config, options }) => {
    const { folder } = project
    const program = await nodeOf(node, folder)
    const jest = join(folder, 'node_modules/jest/bin/jest.js')
    const print = ['-p', 'process.version']

    const version = await run(program, print, folder)
    const { stderr } = await run(program, [jest, '-c', config], folder, {
      ...environment,
      NODE_OPTIONS: options,
    })

    expect(version.stdout).toMatch(new RegExp(`^v${node}\\.`))
    expect(stderr).toContain('Tests:       3 passed, 3 total')
  },
)
