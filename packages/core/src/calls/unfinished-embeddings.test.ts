/** Embedding and reranking calls that end before all of their texts are evaluated. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import type { Caller } from '../accounts/auth/caller.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const caller: Caller = { id: 'ann', limits: { tokensPerDay: 10_000 } }
const opened: Llm[] = []
afterEach(async () => {
  for (const llm of opened.splice(0)) await llm.close()
})

/** Starts a call that has evaluated texts of the given lengths, and then waits until it is aborted or fails. */
async function startCall(kind: 'embed' | 'rerank', lengths: readonly number[], database = ':memory:') {
  let fail = (_error: LlmError): void => {}
  let onEvaluated = (): void => {}
  const evaluated = new Promise<void>((resolve) => {
    onEvaluated = resolve
  })
  const work = (_request: object, { signal, onInputTokens }: EngineCall) =>
    new Promise<never>((_resolve, reject) => {
      fail = reject
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      for (const length of lengths) onInputTokens?.(length)
      onEvaluated()
    })
  const engine: Engine = { ...scriptedEngine('none'), embed: work, rerank: work }
  const llm = await createLlm({ engine, database, prices })
  opened.push(llm)
  const leaving = new AbortController()
  const options = { caller, signal: leaving.signal }
  const over = (
    kind === 'embed'
      ? llm.embed({ model: 'tiny', inputs: ['a', 'b', 'c'] }, options)
      : llm.rerank({ model: 'tiny', query: 'a', documents: ['b', 'c'] }, options)
  ).catch(() => {})
  await evaluated
  return { llm, over, abort: () => leaving.abort(), fail: () => fail(new LlmError('upstream', 'It broke.')) }
}

/** Tokens of today that the limits have counted. */
const countedTokens = async (llm: Llm): Promise<number> =>
  10_000 - ((await llm.limits.of(caller))[0]?.remaining ?? 0)

for (const kind of ['embed', 'rerank'] as const)
  for (const [end, status] of [
    ['abort', 'aborted'],
    ['fail', 'failed'],
  ] as const)
    test(`a call of \`${kind}\` with the status ${status} counts the texts that were evaluated`, async () => {
      const call = await startCall(kind, [5, 7])

      call[end]()
      await call.over

      expect(await call.llm.usage.calls()).toMatchObject([
        { status, tokens: { input: 12, output: 0 }, undeliveredTokens: 0, nanoUsd: 12_000 },
      ])
      expect(await countedTokens(call.llm)).toBe(12)
    })

test('a call without an evaluated text counts no tokens', async () => {
  const { llm, over, abort } = await startCall('embed', [])

  abort()
  await over

  expect(await llm.usage.calls()).toMatchObject([{ status: 'aborted', tokens: { input: 0 }, nanoUsd: 0 }])
  expect(await countedTokens(llm)).toBe(0)
})

test('texts with more tokens than estimated are counted while the call runs', async () => {
  const { llm, over, abort } = await startCall('embed', [2_000, 1_000])

  await expect.poll(() => countedTokens(llm)).toBeGreaterThanOrEqual(3_000)
  abort()
  await over

  expect(await countedTokens(llm)).toBe(3_000)
})

test('texts that were evaluated when the app closes are charged, whatever else the engine reports', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'closing-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const database = join(folder, 'usage.db')
  const { over, abort } = await startCall('embed', [5, Number.NaN, -3, 7], database)

  await opened.pop()?.close()
  abort()
  await over
  const later = await createLlm({ engine: scriptedEngine('none'), database })
  opened.push(later)

  expect(await later.usage.calls()).toMatchObject([{ status: 'aborted', tokens: { input: 12 } }])
})
