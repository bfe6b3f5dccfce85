/** Runs the code of the pages about in-process calls with the built-in model. */
import * as core from '@modelmount/core'
import express from 'express'
import request from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyFolder } from '../support/empty-folder.ts'
import { codeBlocks } from '../support/pages.ts'

let llm: core.Llm
const app = express()

beforeAll(async () => {
  llm = await core.createLlm({ models: emptyFolder(), local: { contextSize: 2_048 } })
})

afterAll(() => llm.close())

const pages = [
  'README.md',
  ...['in-process', 'streaming', 'structured-output', 'tools'].map((name) => `docs/guides/${name}.md`),
]

/** Blocks that create an `Llm` of their own are complete apps, which other tests run. */
const blocks = pages
  .flatMap(codeBlocks)
  .filter(
    ({ language, code, mark }) =>
      language === 'js' && mark !== 'koa' && code.includes('llm.') && !code.includes('createLlm'),
  )
  .map(({ page, code }) => ({ page, code, title: code.split('\n').find((line) => line.includes('llm.')) }))

test.each(blocks)('$page: $title', async ({ code }) => {
  const output: unknown[] = []
  const scope = {
    ...core,
    ...{ llm, app, z },
    console: { log: (...values: unknown[]) => output.push(...values) },
    process: { stdout: { write: (text: string) => output.push(text) } },
  }
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  const run = new AsyncFunction(...Object.keys(scope), code.replaceAll(/^import .*$/gm, ''))

  await run(...Object.values(scope))

  const printsAlways = /console|process\.stdout/.test(code) && !code.includes('catch')
  if (printsAlways) expect(output).not.toEqual([])
})

test('the pages have examples of each kind', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(14)
})

test('the route of the page streams a story', async () => {
  const { text } = await request(app).get('/api/story').expect(200)

  expect(text).not.toBe('')
})

test('the route of the page about streams streams a joke', async () => {
  const { text, type } = await request(app).get('/api/joke').expect(200)

  expect(type).toBe('text/plain')
  expect(text).not.toBe('')
})

test('the route of the page streams partial objects, and the whole one', async () => {
  const { text } = await request(app).get('/api/trip').expect(200)

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.length).toBeGreaterThan(2)
  expect(lines.at(-1)).toMatchObject({ object: { title: expect.any(String) } })
})
