import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../test/support/budgets.ts'
import { LlmError } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { GrammarBuilder, type GrammarResult } from './grammar-builder.ts'
import { TenantCpu } from './workers/cpu-budget.ts'
import type { PoolWorker } from './workers/worker-pool.ts'

const tooMuchTime = new LlmError('invalid_request', 'Building a grammar takes too much time.')

const constraintOf = (source: string): OutputConstraint => ({ format: { type: 'grammar', source } })

const openBuilderOf = (run: PoolWorker<OutputConstraint, GrammarResult>['run']): GrammarBuilder =>
  new GrammarBuilder({ steps: 0 }, () => ({ run, restart: () => {} }))

/** Builds grammars at once. Each takes a second of CPU time. */
const openBuilder = (built: string[]): GrammarBuilder =>
  openBuilderOf(async ({ format }, _signal, meter) => {
    const source = format?.type === 'grammar' ? format.source : ''
    built.push(source)
    meter.stop(1_000)
    return { source }
  })

test('tenants take turns, so that the grammars of one tenant do not delay those of others', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const tenants = new TenantCpu()
  const greedy = Array.from({ length: 20 }, (_, index) =>
    builder.build(constraintOf(`greedy ${index}`), budgetOf({ tenant: 'greedy' }, tenants)),
  )

  await builder.build(constraintOf('polite'), budgetOf({ tenant: 'ann' }, tenants))
  await Promise.all(greedy)

  // At most as many grammars as the pool builds at once come before it.
  expect(built.indexOf('polite')).toBeLessThanOrEqual(4)
})

test('a grammar counts towards the CPU time of its call, unless it was built before', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const budget = budgetOf()

  expect(await builder.build(constraintOf('same'), budget)).toBe('same')
  expect(await builder.build(constraintOf('same'), budget)).toBe('same')

  expect(budget.remainingMs).toBe(9_000)
})

test('equal grammars that one tenant asks for at the same time are built once, for one call', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const [first, second] = [budgetOf(), budgetOf()]

  const sources = await Promise.all(
    [first, second].map((budget) => builder.build(constraintOf('same'), budget)),
  )

  expect(sources).toEqual(['same', 'same'])
  expect(built).toEqual(['same'])
  expect([first.remainingMs, second.remainingMs]).toEqual([9_000, 10_000])
})

test('a grammar that cannot be built fails all calls that wait for it', async () => {
  let count = 0
  const error = { code: 'invalid_request', message: 'No.', details: {} } as const
  const builder = openBuilderOf(async () => {
    count++
    return { error }
  })

  const calls = [budgetOf(), budgetOf()].map((budget) => builder.build(constraintOf('same'), budget))

  for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'invalid_request' })
  expect(count).toBe(1)
})

/** The first job does not end until its signal aborts. */
function openStuckBuilder() {
  let onStart = (): void => {}
  const started = new Promise<void>((resolve) => {
    onStart = resolve
  })
  let count = 0
  const builder = openBuilderOf(async (_constraint, signal) => {
    if (++count > 1) return { source: 'built' }
    onStart()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    throw tooMuchTime
  })
  return { builder, started }
}

test('a call that is aborted during its build does not fail the calls that wait for it', async () => {
  const { builder, started } = openStuckBuilder()
  const controller = new AbortController()
  const first = builder.build(constraintOf('same'), budgetOf({ signal: controller.signal }))
  const others = [1, 2].map(() => builder.build(constraintOf('same'), budgetOf()))
  await started

  controller.abort()

  await expect(first).rejects.toThrow(tooMuchTime.message)
  expect(await Promise.all(others)).toEqual(['built', 'built'])
})

test('a call that is aborted while it waits for the build of another call ends at once', async () => {
  const { builder, started } = openStuckBuilder()
  const controller = new AbortController()
  const building = new AbortController()
  const first = builder.build(constraintOf('same'), budgetOf({ signal: building.signal }))
  const second = builder.build(constraintOf('same'), budgetOf({ signal: controller.signal }))
  await started

  controller.abort()

  expect(await second).toBeUndefined()
  building.abort()
  await expect(first).rejects.toThrow(tooMuchTime.message)
})

test('a grammar that takes too much time is built once for all calls that wait for it', async () => {
  let count = 0
  const builder = openBuilderOf(async () => {
    count++
    throw tooMuchTime
  })

  const calls = [1, 2, 3].map(() => builder.build(constraintOf('same'), budgetOf()))

  for (const call of calls)
    await expect(call).rejects.toMatchObject({
      code: 'invalid_request',
      message: tooMuchTime.message,
      details: { param: 'format.source' },
    })
  expect(count).toBe(1)
})

test('a tenant does not wait for the turn of another tenant that wants the same grammar', async () => {
  const built: string[] = []
  const builder = openBuilder(built)
  const tenants = new TenantCpu()
  const greedy = Array.from({ length: 5 }, (_, index) =>
    builder.build(constraintOf(`greedy ${index}`), budgetOf({ tenant: 'greedy' }, tenants)),
  )

  await builder.build(constraintOf('greedy 4'), budgetOf({ tenant: 'ann' }, tenants))

  expect(built.slice(0, 2)).toEqual(['greedy 0', 'greedy 4'])
  await Promise.all(greedy)
})

test.each([
  [{ format: { type: 'json-schema', schema: {} } }, 'format.schema'],
  [{ format: { type: 'grammar', source: 'root ::= "a"' } }, 'format.source'],
  [{ format: { type: 'json' } }, 'format'],
  [{}, 'tools'],
] as const)('an error for the limits of %j names the field %s', async (constraint, param) => {
  const builder = openBuilderOf(async () => {
    throw tooMuchTime
  })

  await expect(builder.build(constraint, budgetOf())).rejects.toMatchObject({
    message: tooMuchTime.message,
    details: { param },
  })
})
