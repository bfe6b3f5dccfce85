/** Which files an app loads when it uses only the rate limiter. Each test starts a separate process. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'

const folder = emptyFolder()
const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** Runs the code in a new Node process. Returns the files that it loaded, relative to the repository root. */
async function loadedBy(name: string, code: string): Promise<readonly string[]> {
  const coverage = join(folder, name)
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    env: { ...process.env, NODE_V8_COVERAGE: coverage },
  })
  return readdirSync(coverage)
    .flatMap((file) => JSON.parse(readFileSync(join(coverage, file), 'utf8')).result as { url: string }[])
    .filter(({ url }) => url.startsWith('file:'))
    .map(({ url }) => fileURLToPath(url).slice(root.length))
    .filter((file) => /^(packages|node_modules)\//.test(file))
}

const core = (file: string): boolean =>
  /^packages\/core\/dist\/(limits\/[\w-]+|limits\/redis\/[\w-]+|storage\/open|options\/check|errors|units)\.js$/.test(
    file,
  )

test('the entry point of limits loads no engine, no schemas and no database', async () => {
  const files = await loadedBy(
    'memory',
    `import { createRateLimiter } from '@modelmount/core/limits'
     const limiter = await createRateLimiter({ limits: { requestsPerMinute: 1 } })
     await limiter.reserve([{ id: 'ann' }], { requests: 1, tokens: 0 })`,
  )

  expect(files).toContain('packages/core/dist/limits/memory.js')
  expect(files.filter((file) => !core(file))).toEqual([])
  expect(files).not.toContain('packages/core/dist/limits/sql.js')
})

test('only the configured database is loaded', async () => {
  const files = await loadedBy(
    'sqlite',
    `import { createRateLimiter } from '@modelmount/core/limits'
     const limiter = await createRateLimiter({ limits: { requestsPerMinute: 1 }, database: ':memory:' })
     await limiter.reserve([{ id: 'ann' }], { requests: 1, tokens: 0 })
     await limiter.close()`,
  )

  expect(files).toContain('packages/core/dist/storage/sqlite.js')
  expect(files.filter((file) => /node_modules\/pg|postgres|zod|llama/.test(file))).toEqual([])
})

test('the entry point of Redis loads no client, no engine and no driver of a database', async () => {
  const files = await loadedBy(
    'redis',
    `import { createRateLimiter } from '@modelmount/core/limits'
     import { redisLimiterStore } from '@modelmount/core/redis'
     const client = { evalSha: async () => '0', eval: async () => '0' }
     const limiter = await createRateLimiter({ limiterStore: redisLimiterStore(client) })
     await limiter.close()`,
  )

  const used = /^packages\/core\/dist\/storage\/(database|leases)\.js$/
  expect(files).toContain('packages/core/dist/limits/redis/limiter.js')
  expect(files.filter((file) => !core(file) && !used.test(file))).toEqual([])
})
