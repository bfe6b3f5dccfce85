/** What model processes report about their work, in `llm.loaded()`. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { encoderModel, noiseModel } from '../support/models.ts'

async function start(): Promise<Llm> {
  const models = emptyFolder()
  await copyFile(noiseModel, join(models, 'noise.gguf'))
  await copyFile(encoderModel, join(models, 'encoder.gguf'))
  const llm = await createLlm({ models, local: { parallel: 1 }, maxAdmitted: 8 })
  onTestFinished(() => llm.close())
  return llm
}

const activityOf = (llm: Llm) => llm.loaded()[0]?.activity
/** The process reports once per second. */
const reported = { timeout: 5_000, interval: 50 }

test('a process reports the sequences that run and wait, its memory and its saved states', async () => {
  const llm = await start()
  const leave = new AbortController()
  const calls = [1, 2, 3].map(() =>
    llm.chat('Hello', { model: 'noise', signal: leave.signal }).catch(() => undefined),
  )

  await expect
    .poll(() => activityOf(llm), reported)
    .toMatchObject({ activeSequences: 1, waitingSequences: 2, reportedAt: expect.any(Date) })
  expect(activityOf(llm)?.memoryBytes).toBeGreaterThan(10_000_000)
  leave.abort()
  await Promise.all(calls)
  await expect
    .poll(() => activityOf(llm), reported)
    .toMatchObject({ activeSequences: 0, waitingSequences: 0 })

  const long = Array.from({ length: 400 }, (_, index) => `word ${index}`).join(' ')
  await llm.chat([{ role: 'user', content: long }], { model: 'noise', maxTokens: 1 })
  await llm.chat('Another prompt', { model: 'noise', maxTokens: 1, caller: { id: 'other' } })
  await expect.poll(() => activityOf(llm)?.cachedStates, reported).toBeGreaterThan(0)
  expect(activityOf(llm)?.cachedStateBytes).toBeGreaterThan(1_000)
})

test('an embedding model reports its memory', async () => {
  const llm = await start()

  await llm.load('encoder')

  await expect.poll(() => activityOf(llm), reported).toMatchObject({ activeSequences: 0, cachedStates: 0 })
})
