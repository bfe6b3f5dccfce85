import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../test/support/budgets.ts'
import type { RuntimeModel } from './model.ts'
import type { RunContext } from './run-context.ts'
import { runRequest } from './run-request.ts'
import { nothingCached, type Runner } from './runner.ts'
import { TenantCpu } from './workers/cpu-budget.ts'

const tenants = new TenantCpu()

function contextOf(run: Runner['run']): RunContext {
  const model: Partial<RuntimeModel> = {
    contextSize: 100,
    vocabularySize: 100,
    template: { source: '', bosToken: '', eosToken: '', specialTokens: [] },
    runner: {
      ...{
        run,
        isDecoding: false,
        activity: { activeSequences: 0, waitingSequences: 0, ...nothingCached },
        wake: () => {},
        deleteStates: async () => 0,
        cachedLength: () => 0,
      },
      whenIdle: async () => {},
    },
    detokenizeWithSpecial: () => '',
  }
  const { signal } = new AbortController()
  const call = { tenant: 'ann', weight: 1, background: false, signal }
  return {
    ...call,
    model: model as RuntimeModel,
    renderer: { render: async () => '' },
    grammars: { build: async () => undefined },
    progress: { steps: 0 },
    budget: budgetOf(call, tenants),
  }
}

test.each<[how: string, run: Runner['run']]>([
  ['was aborted', async () => 'aborted'],
  ['has failed', () => Promise.reject(new Error('a mistake'))],
  [
    'could not start',
    () => {
      throw new Error('a mistake')
    },
  ],
])('heavy tenants need not rest for an answer that %s', async (_how, run) => {
  const heavy = budgetOf({ tenant: 'heavy' }, tenants)
  heavy.charge(5_000)
  let isResting = false
  const context = contextOf((job) => {
    isResting = heavy.mustRest()
    return run(job)
  })

  await runRequest(
    { model: 'any', input: { kind: 'text', prompt: [[1 as Token, 2 as Token]], template: false } },
    context,
    () => {},
  ).catch(() => {})

  expect(isResting).toBe(true)
  expect(heavy.mustRest()).toBe(false)
})
