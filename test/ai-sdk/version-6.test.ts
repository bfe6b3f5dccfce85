/** Version 6 of the AI SDK, with a scripted engine and with the built-in model. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createModelmount } from '@modelmount/ai-sdk'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { encoderModel } from '../support/models.ts'
import { expectedReal, expectedScripted } from './expected.ts'
import { mockSituations } from './same-as-mock.mjs'
import { realSituations, scriptedSituations } from './situations.mjs'

const expected = expectedScripted(6)

test('each situation has its expectation', () => {
  expect(Object.keys(scriptedSituations).sort()).toEqual(Object.keys(expected).sort())
  expect(Object.keys(realSituations).sort()).toEqual(Object.keys(expectedReal).sort())
})

describe('with a scripted engine', () => {
  test.each(Object.entries(scriptedSituations))('%s', async (name, run) => {
    expect(await run()).toEqual(expected[name])
  })

  test.each(Object.entries(mockSituations))('%s', async (_name, run) => {
    const { ours, mock } = await run()

    expect(ours).toEqual(mock)
  })
})

describe('with the local engine', () => {
  const models = emptyFolder()
  let llm: Llm

  beforeAll(async () => {
    symlinkSync(encoderModel, join(models, 'encoder.gguf'))
    llm = await createLlm({ models })
  })

  afterAll(() => llm.close())

  test.each(Object.entries(realSituations))('%s', async (name, run) => {
    expect(await run(createModelmount(llm))).toEqual(expectedReal[name])
  })
})
