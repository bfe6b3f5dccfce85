import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../test/support/budgets.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { GrammarBuilder, type GrammarResult } from './grammar-builder.ts'
import { TenantCpu } from './workers/cpu-budget.ts'
import type { PoolWorker } from './workers/worker-pool.ts'

const constraintOf = (source: string): OutputConstraint => ({ format: { type: 'grammar', source } })

/** Builds grammars at once. Each takes a second of CPU time. */
function openBuilder(built: string[]): GrammarBuilder {
  const worker: PoolWorker<OutputConstraint, GrammarResult> = {
    run: async ({ format }, _signal, meter) => {
      const source = format?.type === 'grammar' ? format.source : ''
      built.push(source)
      meter.stop(1_000)
      return { source }
    },
    restart: () => {},
  }
  return new GrammarBuilder({ steps: 0 }, () => worker)
}

test('tenants take turns, so that the grammars of one tenant do not delay those of others', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const tenants = new TenantCpu()
  const greedy = Array.from({ length: 5 }, (_, index) =>
    builder.build(constraintOf(`greedy ${index}`), budgetOf({ tenant: 'greedy' }, tenants)),
  )

  await builder.build(constraintOf('polite'), budgetOf({ tenant: 'ann' }, tenants))
  await Promise.all(greedy)

  expect(built.indexOf('polite')).toBe(1)
})

test('a grammar counts towards the CPU time of its call, unless it was built before', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const budget = budgetOf()

  expect(await builder.build(constraintOf('same'), budget)).toBe('same')
  expect(await builder.build(constraintOf('same'), budget)).toBe('same')

  expect(budget.remainingMs).toBe(9_000)
})
