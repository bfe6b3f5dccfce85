import { join } from 'node:path'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { environment, run } from '../packaging/npm.ts'
import { createProject, greet, greeting, start } from './project.ts'

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 300_000 })

test('Hono serves the routes below a prefix, beside its own', async () => {
  const { folder, remove } = await createProject('hono', [], ['hono', '@hono/node-server'], {
    type: 'module',
  })
  onTestFinished(remove)
  const app = start(process.execPath, ['app.js'], folder)
  onTestFinished(() => app.stop())

  const url = await app.nextAddress()

  expect(await greet(url)).toBe(greeting)
  expect(await (await fetch(url)).text()).toBe('my own route')
  expect((await fetch(`${url}/llm/v1/models`)).status).toBe(401)
})

const env = { ...environment, NEXT_TELEMETRY_DISABLED: '1' }

// One framework is enough for each change.
test.each(inject('isThorough') ? ['build', 'dev'] : [])(
  'Next.js serves the routes in a route handler, and a page asks the model: next %s',
  async (command) => {
    const { folder, remove } = await createProject('next', [], ['next', 'react', 'react-dom'])
    onTestFinished(remove)
    const next = join(folder, 'node_modules/next/dist/bin/next')
    if (command === 'build') await run(process.execPath, [next, 'build'], folder, env)
    const how = command === 'build' ? 'start' : 'dev'
    const app = start(process.execPath, [next, how, '-p', '0', '-H', '127.0.0.1'], folder, env)
    onTestFinished(() => app.stop())

    const url = await app.nextAddress()

    expect(await greet(url)).toBe(greeting)
    expect(await (await fetch(url)).text()).toContain(greeting)
    expect((await fetch(`${url}/llm/v1/models`)).status).toBe(401)
  },
)
