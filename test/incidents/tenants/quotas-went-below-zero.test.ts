/** E-6: negative numbers and races made quotas negative or endless, and refunds created credit. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Caller } from '../../../packages/core/src/accounts/auth/caller.ts'
import { sanitizeUsage } from '../../../packages/core/src/accounts/usage/call-usage.ts'
import { type Ledger, openLedger } from '../../../packages/core/src/accounts/usage/ledger.ts'
import { uncached } from '../../../packages/core/src/engine/events.ts'
import type { Database } from '../../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'

const prices = { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const limitNanoUsd = 100_000

let database: Database
let ledger: Ledger
let callers = 0
beforeAll(async () => {
  database = await openDatabase(':memory:')
  ledger = await openLedger(database, { prices })
})
afterAll(() => database.close())

/** Reserves credit, or settles a reservation. A share below 0 or of a part of a token is that of a faulty engine. */
const step = fc.oneof(
  fc.record({ reserve: fc.nat(40), input: fc.nat(10) }),
  fc.record({
    settle: fc.nat(9),
    share: fc.constantFrom(-1, 0, 0.3, 1),
    status: fc.constantFrom('ended', 'failed', 'aborted'),
  }),
)

test('in any order of reservations and settlements, spending is exact and never above the limit', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const caller: Caller = {
        id: `key_${++callers}`,
        spendingLimit: { usd: limitNanoUsd / 1e9, period: 'lifetime' },
      }
      let charged = 0
      let reserved = 0
      let calls = 0
      const open: { settle(share: number, status: 'ended' | 'failed' | 'aborted'): Promise<void> }[] = []
      for (const one of steps) {
        if ('reserve' in one) {
          const most = { inputTokens: one.input, outputTokens: one.reserve }
          const cost = one.input * 1_000 + one.reserve * 2_000
          const fits = charged + reserved + cost <= limitNanoUsd
          const call = { id: `${caller.id}-${++calls}`, caller, model: 'tiny' }
          const credit = await ledger.reserve(call, most).catch(() => undefined)
          expect(credit !== undefined, `${charged} + ${reserved} + ${cost}`).toBe(fits)
          if (!credit) continue
          reserved += cost
          open.push({
            settle: async (share, status) => {
              const outputTokens = one.reserve * share
              const usage = sanitizeUsage({
                ...uncached,
                inputTokens: one.input,
                reusedTokens: 0,
                outputTokens,
              })
              await credit.settle({ usage, status, durationMs: 1 })
              // The second settlement must change nothing.
              await credit.settle({ usage, status, durationMs: 1 })
              reserved -= cost
              charged += usage.inputTokens * 1_000 + usage.outputTokens * 2_000
            },
          })
        } else {
          const [settling] = open.splice(one.settle % Math.max(open.length, 1), 1)
          await settling?.settle(one.share, one.status)
        }
      }
      for (const settling of open) await settling.settle(0, 'aborted')

      const rows = (await ledger.calls({ limit: 1_000 })).filter(({ caller: id }) => id === caller.id)
      const sum = rows.reduce((total, { nanoUsd }) => total + Number(nanoUsd), 0)
      for (const { nanoUsd } of rows) expect(Number(nanoUsd)).toBeGreaterThanOrEqual(0)
      expect(sum).toBe(charged)
      expect(sum).toBeLessThanOrEqual(limitNanoUsd)
    }),
    { numRuns: 60 },
  )
})
