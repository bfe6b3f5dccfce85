/** D-13: names with markup do nothing in any page. Clients choose names of keys and models. */
import { copyFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeAll, expect, test, vi } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { pacedEngine } from '../../support/paced-engine.ts'

const markup = `<img src=x onerror="document.title='changed'">`
const tiny = createRequire(import.meta.url).resolve('@modelmount/tiny-model/tiny-chat.gguf')

let app: ConsoleApp
const engine = pacedEngine(scriptedEngine(`Hello ${markup}`), ({ model }) => model !== markup)
beforeAll(async () => {
  const models = emptyFolder()
  copyFileSync(tiny, join(models, `${markup.replaceAll(/["'=/]/g, '')}.gguf`))
  app = await startConsole({
    engine,
    models,
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } },
  })
  const { secret } = await app.llm.keys.create({
    ...{ name: markup, tenant: markup, limits: { requestsPerMinute: 4 } },
  })
  const client = app.llm.as(await app.llm.keys.authenticate(secret))
  await client.chat('Hello', { model: markup })
  await app.llm.keys.requests.create(await app.llm.keys.authenticate(secret), {
    limits: { requestsPerMinute: 5 },
    reason: markup,
  })
  await vi.waitFor(async () => expect(await app.llm.usage.report({ by: 'model' })).toHaveLength(1))
})

test.each([
  'overview',
  'live',
  'usage',
  'batches',
  'keys',
  'limits',
  'models',
  'audit',
  'playground',
  'my-key',
])('markup in names of keys, tenants and models does nothing in %s', async (name) => {
  const running = app.llm.chat('Hello', { model: `${markup} that runs` })
  const { page, expectGood } = await app.open({
    key: { name: markup, scopes: ['admin', 'models', 'inference'] },
    page: `#/${name}`,
  })

  await page
    .getByText(/<img src/)
    .first()
    .waitFor()
  await expectGood(`hostile-${name}`)

  expect(await page.locator('img[src=x]').count()).toBe(0)
  expect(await page.title()).not.toBe('changed')
  engine.allow(100)
  await running
})
