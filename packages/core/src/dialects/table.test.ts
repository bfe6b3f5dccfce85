import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../../../test/support/listen.ts'
import { toNodeHandler } from '../http/node.ts'
import { internals, type Llm } from '../llm.ts'
import { type Dialect, defineDialect } from './dialect.ts'
import { openai } from './openai/index.ts'
import { createDialectTable } from './table.ts'

const renderError = () => ({ status: 418, headers: {}, body: 'no' })
const toy = (home: string) =>
  defineDialect({
    name: 'toy',
    home,
    requestIdHeader: 'x-toy',
    renderError,
    renderErrorFrame: () => 'no\n',
    routes: [],
  })

const llm = {
  generate: () => {},
  [internals]: { access: { checkOrigin: () => ({}) }, stallLimits: { responseMs: 60_000, bodyMs: 60_000 } },
} as unknown as Llm

async function serve(...chosen: Dialect[]): Promise<string> {
  const { url, close } = await listen(toNodeHandler(createDialectTable(chosen), llm))
  onTestFinished(close)
  return url
}

test('the mount point responds with the text of the first dialect that has one', async () => {
  const url = await serve(openai, toy('Toys are running'), toy('More toys'))

  const home = await fetch(`${url}/?x=y`)

  expect(home.status).toBe(200)
  expect(home.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await home.text()).toBe('Toys are running')
})

test('HEAD of the mount point has no body', async () => {
  const url = await serve(toy('Toys are running'))

  const home = await fetch(url, { method: 'HEAD' })

  expect(home.status).toBe(200)
  expect(home.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await home.text()).toBe('')
})

test.each([
  ['POST', '/'],
  ['GET', '/nope'],
])('%s %s does not respond with the text of the mount point', async (method, path) => {
  const url = await serve(toy('Toys are running'))

  expect((await fetch(url + path, { method })).status).toBe(418)
})

test('the mount point is an unknown path if no dialect has a text for it', async () => {
  const url = await serve(openai)

  expect((await fetch(url)).status).toBe(404)
})
