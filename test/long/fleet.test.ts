/** A fleet of four replicas of the built-in model, each with a server and a model process of its own. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { type Balance, type Fleet, type FleetOptions, fleetEngine } from '@modelmount/core/fleet'
import { toNodeHandler } from '@modelmount/core/http'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { randomOf } from '../support/random.ts'
import { ServedReplica } from '../support/served-replicas.ts'
import { runClient } from './fleet/clients.ts'
import { type ConversationTotals, runConversations } from './fleet/conversations.ts'

const models = emptyFolder()

/** Starts four replicas and an app in front of them. */
async function start(
  options: Partial<FleetOptions>,
  args: readonly string[] = [],
): Promise<{ readonly llm: Llm; readonly fleet: Fleet; readonly replicas: readonly ServedReplica[] }> {
  const replicas = Array.from({ length: 4 }, () => new ServedReplica(args))
  onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.close()))
  })
  await Promise.all(replicas.map((replica) => replica.start()))
  const urls = replicas.map(({ url }) => url)
  const fleet = fleetEngine({ replicas: urls, server: 'modelmount', ...options })
  const llm = await createLlm({
    ...{ models, engine: fleet, database: ':memory:' },
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } },
  })
  onTestFinished(() => llm.close())
  return { llm, fleet, replicas }
}

async function allCalls(llm: Llm): Promise<readonly CallRow[]> {
  const rows: CallRow[] = []
  for (let page: readonly CallRow[]; ; rows.push(...page)) {
    page = await llm.usage.calls({ limit: 1_000, after: rows.at(-1)?.id })
    if (page.length === 0) return rows
  }
}

type CallRow = Awaited<ReturnType<Llm['usage']['calls']>>[number]

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`

test('200 conversations of ten turns find at least 95 % of their prefix tokens in the caches', async ({
  task,
}) => {
  const rows: string[] = []
  const run = async (balance: Balance, slots: number): Promise<ConversationTotals> => {
    const args = ['--parallel', `${slots}`, '--context', '2048']
    const { llm, fleet, replicas } = await start({ balance }, args)
    const startedAt = performance.now()
    const settings = { model: 'tiny', conversations: 200, turns: 10, parallel: 8 }
    const totals = await runConversations(llm, settings, randomOf(28))
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    const { calls, prefixTokens, foundTokens } = totals
    const shares = fleet.replicas().map((replica) => replica.calls)
    rows.push(
      `| ${balance} | ${slots} | ${calls} | ${shares.join(', ')} | ${prefixTokens} | ${foundTokens} | ${percent(foundTokens, prefixTokens)} | ${seconds} |`,
    )
    await llm.close()
    await Promise.all(replicas.map((replica) => replica.close()))
    return totals
  }

  const byPrefix = await run('prefix', 80)
  const roundRobin = await run('round-robin', 80)
  await run('prefix', 4)

  task.meta.report = [
    '| Balance | Slots of each replica | Calls | By replica | Prefix tokens | Found | Share | Seconds |',
    '| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |',
    ...rows,
  ].join('\n')
  expect(byPrefix.calls).toBe(2_000)
  expect(byPrefix.foundTokens / byPrefix.prefixTokens).toBeGreaterThanOrEqual(0.95)
  expect(roundRobin.foundTokens / roundRobin.prefixTokens).toBeLessThan(0.95)
}, 1_200_000)

test('a replica is killed every 20 s for five minutes: no call is lost before its first token, and the ledger has what clients got', async ({
  task,
}) => {
  const { llm, fleet, replicas } = await start({})
  const { url, close } = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(close)
  const ending = new AbortController()
  const clients = Promise.all(
    Array.from({ length: 12 }, (_, index) => runClient(url, `client ${index}`, 200, ending.signal)),
  )
  let kills = 0
  const restarts: Promise<void>[] = []
  for (const endsAt = performance.now() + 300_000; performance.now() < endsAt; ) {
    await delay(20_000)
    const replica = replicas[kills++ % replicas.length] as ServedReplica
    await replica.kill()
    restarts.push(delay(4_000).then(() => replica.start()))
  }
  await Promise.all(restarts)
  ending.abort()
  const answers = (await clients).flat()

  const count = (wanted: string): number => answers.filter(({ outcome }) => outcome === wanted).length
  const rows = await allCalls(llm)
  const charged = rows.reduce((sum, { tokens }) => sum + tokens.output, 0)
  const received = answers.reduce((sum, { tokens }) => sum + tokens, 0)
  const ejections = fleet.replicas().reduce((sum, replica) => sum + replica.ejections, 0)
  const retried = fleet.replicas().reduce((sum, { calls }) => sum + calls, 0) - answers.length
  task.meta.report = `${kills} kills, ${ejections} ejections, ${retried} retries; ${count('whole')} whole answers, ${count('failed before the first token')} calls failed before their first token, ${count('failed after the first token')} after it, ${count('untyped')} ended without a typed error; ${received} tokens received, ${charged} charged.`
  expect(count('untyped')).toBe(0)
  expect(count('failed before the first token')).toBe(0)
  expect(count('failed after the first token')).toBeGreaterThan(0)
  expect(rows).toHaveLength(answers.length)
  const tokensOf = new Map(rows.map(({ id, tokens }) => [id, tokens.output]))
  expect(answers.filter(({ id = '', tokens }) => tokensOf.get(id) !== tokens)).toEqual([])
  expect(charged).toBe(received)
}, 600_000)
