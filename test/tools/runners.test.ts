import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest'
import { environment } from '../packaging/npm.ts'
import { freePort } from '../support/free-port.ts'
import { createProject, greet, greeting, start, type ToolProject } from './project.ts'

vi.setConfig({ testTimeout: 130_000 })

const isThorough = inject('isThorough')
let project: ToolProject
const writeGreeting = (text: string): Promise<void> =>
  writeFile(join(project.folder, 'greeting.js'), `export const greeting = '${text}'\n`)

beforeAll(async () => {
  const tools = isThorough ? (['express', 'tsx', 'pm2'] as const) : (['express'] as const)
  project = await createProject('runners', ['express'], tools, { type: 'module' })
}, 180_000)

afterEach(() => writeGreeting('first version'))
afterAll(() => project.remove(), 60_000)

const watchers: readonly (readonly [title: string, command: readonly string[]])[] = [
  ['node --watch', [process.execPath, '--watch', 'app.js']],
  ['tsx watch', ['node_modules/.bin/tsx', 'watch', 'app.js']],
]

test.each(isThorough ? watchers : watchers.slice(0, 1))(
  '%s starts the app again',
  async (_title, command) => {
    const [file = '', ...args] = command
    const app = start(file, args, project.folder)
    onTestFinished(() => app.stop())
    const url = await app.nextAddress()
    expect(await greet(url)).toBe(greeting)
    expect(await (await fetch(url)).text()).toBe('first version')

    await writeGreeting('second version')
    const next = await app.nextAddress()

    expect(await (await fetch(next)).text()).toBe('second version')
    expect(await greet(next)).toBe(greeting)
  },
)

test.each(isThorough ? ['cluster'] : [])('PM2 in %s mode reloads the app, and streams end', async () => {
  const { folder } = project
  const env = { ...environment, PM2_HOME: join(folder, '.pm2'), PORT: String(await freePort()) }
  const pm2 = (...args: readonly string[]) =>
    promisify(execFile)(join(folder, 'node_modules/.bin/pm2'), args, { cwd: folder, env, timeout: 100_000 })
  onTestFinished(async () => void (await pm2('kill')))
  const url = `http://127.0.0.1:${env.PORT}`
  await pm2('start', 'ecosystem.config.cjs')
  expect(await greet(url)).toBe(greeting)
  const response = await fetch(`${url}/llm/api/generate`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'tiny',
      prompt: 'Hello',
      format: { type: 'array', items: { enum: ['a', 'b'] }, minItems: 500 },
      options: { num_predict: 3_000 },
    }),
  })

  await writeGreeting('second version')
  const [text] = await Promise.all([response.text(), pm2('reload', 'app')])

  expect(text.trim().split('\n').at(-1)).toContain('"done":true')
  expect(await (await fetch(url)).text()).toBe('second version')
  expect(await greet(url)).toBe(greeting)
})
