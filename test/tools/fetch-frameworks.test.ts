import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { environment, root, run } from '../packaging/npm.ts'
import { codeBelow } from '../support/pages.ts'
import { createProject, greet, greeting, start } from './project.ts'

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 300_000 })

test('the Hono app of the pages serves the routes below a prefix, and limits a route of the app', async () => {
  const code = [
    ...codeBelow('docs/guides/bundlers-and-tools.md', 'Hono'),
    ...codeBelow('docs/guides/rate-limits.md', 'Hono and other frameworks'),
    readFileSync(join(root, 'test/tools/apps/hono/rest-of-app.js'), 'utf8'),
  ].join('\n')
  const appCode = code
    .replace('port: 3000', "port: 0, hostname: '127.0.0.1'")
    .replace('requestsPerMinute: 30', 'requestsPerMinute: 2')
  const tools = ['hono', '@hono/node-server'] as const
  const { folder, remove } = await createProject('hono', [], tools, { type: 'module' }, { 'app.js': appCode })
  onTestFinished(remove)
  const app = start(process.execPath, ['app.js'], folder)
  onTestFinished(() => app.stop())

  const url = await app.nextAddress()
  const limited = []
  for (let i = 0; i < 3; i++) limited.push(await fetch(`${url}/time`))

  expect(await greet(url)).toBe(greeting)
  expect(await (await fetch(url)).text()).toBe('my own route')
  expect((await fetch(`${url}/llm/v1/models`)).status).toBe(401)
  expect(
    limited.map(({ status, headers }) => [status, headers.get('x-ratelimit-remaining-requests')]),
  ).toEqual([
    [200, '1'],
    [200, '0'],
    [429, '0'],
  ])
  expect(Number(limited[2]?.headers.get('retry-after'))).toBeGreaterThan(0)
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
