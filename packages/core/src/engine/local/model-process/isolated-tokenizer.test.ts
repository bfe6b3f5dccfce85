import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../test/support/budgets.ts'
import { invalidRequest } from '../../../errors.ts'
import { IsolatedTokenizer, type TokenizeJob, type TokenizeResult } from './isolated-tokenizer.ts'
import type { PoolWorker } from './workers/worker-pool.ts'

const tokens = [1, 2, 3] as Token[]

/** A tokenizer whose worker fails for the first text. */
function failingOnce(fail: Parameters<typeof fakeWorker>[0]): IsolatedTokenizer {
  return new IsolatedTokenizer('model.gguf', undefined, { steps: 0 }, () => fakeWorker(fail))
}

function fakeWorker(spentMsOf: (remainingMs: number) => number): PoolWorker<TokenizeJob, TokenizeResult> {
  let hasFailed = false
  return {
    run: async (_job, _signal, meter) => {
      if (hasFailed) return { tokens }
      hasFailed = true
      meter.stop(spentMsOf(meter.remainingMs))
      throw invalidRequest('rejected')
    },
    restart: () => {},
  }
}

test('a text that crashed its worker is rejected again', async () => {
  const tokenizer = failingOnce(() => 100)

  for (const _attempt of [1, 2])
    await expect(tokenizer.tokenize('text', true, budgetOf())).rejects.toMatchObject({ message: 'rejected' })
  expect(await tokenizer.tokenize('other', true, budgetOf())).toEqual(tokens)
})

test('a text that took too long is tokenized again, since the machine may have been busy', async () => {
  const tokenizer = failingOnce((remainingMs) => remainingMs)

  await expect(tokenizer.tokenize('text', true, budgetOf())).rejects.toMatchObject({ message: 'rejected' })

  expect(await tokenizer.tokenize('text', true, budgetOf())).toEqual(tokens)
})
