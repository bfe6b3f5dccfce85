/** Sends the requests of the pages to an app, and parses the data that they show. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import request from 'supertest'
import { afterAll, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { codeBlocks, documentationPages, shellLines } from '../support/pages.ts'

const blocks = documentationPages.flatMap(codeBlocks)

interface ShownRequest {
  readonly page: string
  readonly path: string
  readonly body: string | undefined
}

/** The requests of `curl` in shell code. */
const requests = documentationPages.flatMap((page) =>
  shellLines(page).flatMap((shown) =>
    [...shown.matchAll(/curl (.*)/g)].map(([, line = '']): ShownRequest => {
      const [, path = '/'] = /http:\/\/[^/\s]+(\/[^\s'"]*)/.exec(line) ?? []
      const [, body] = /(?:-d|--json) '([^']*)'/.exec(line) ?? []
      return { page, path, body: line.includes('text/plain') ? undefined : body }
    }),
  ),
)

const llm = await createLlm({ engine: scriptedEngine('Hello.') })
const app = express().use('/llm', llmRouter(llm)).use(llmRouter(llm))

afterAll(() => llm.close())

const calls = requests.filter(
  ({ path, body = '…' }) => /^(\/llm)?\/(v1|api\/(chat|generate|embed))\b/.test(path) && !body.includes('…'),
)

test.each(calls)('$page: the request to $path is answered', async ({ path, body }) => {
  await request(app).post(path).set('content-type', 'application/json').send(body).expect(200)
})

test('bodies of requests are JSON', () => {
  const bodies = requests.flatMap(({ body }) => (body === undefined ? [] : [body]))

  for (const body of bodies) expect(() => JSON.parse(body), body).not.toThrow()
  expect(bodies.length).toBeGreaterThan(30)
  expect(calls.length).toBeGreaterThan(20)
})

test('data is in the format that the page names', () => {
  const parsers: Readonly<Record<string, (text: string) => unknown>> = {
    json: JSON.parse,
    jsonl: (text) =>
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    yaml: parseYaml,
  }
  const data = blocks.filter(({ language }) => language in parsers)

  for (const { page, line, language, code } of data)
    expect(() => parsers[language]?.(code), `${page}:${line}`).not.toThrow()
  expect(data.length).toBeGreaterThan(10)
})
