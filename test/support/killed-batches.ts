/** Batches of the built-in model whose apps and model processes are killed at random moments until they have ended. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { allCalls, type CallRow } from './all-calls.ts'
import { emptyFolder } from './empty-folder.ts'
import { type KillableServer, startKillableServer } from './killed-server.ts'
import { randomOf } from './random.ts'

export interface KillPlan {
  /** Items of all batches together. */
  readonly items: number
  readonly appKills: number
  readonly modelKills: number
  /** App processes that run at the same time. */
  readonly apps: number
}

/** With odd numbers, so that the cost of each item is rounded. In nano-dollars per token. */
const rates = { input: 123.457, cachedInput: 17.389, cacheWrite: 154.321, output: 617.283 }
const prices = {
  '*': {
    inputPerMillionUsd: rates.input / 1_000,
    cachedInputPerMillionUsd: rates.cachedInput / 1_000,
    cacheWritePerMillionUsd: rates.cacheWrite / 1_000,
    outputPerMillionUsd: rates.output / 1_000,
  },
}
const caller = { id: 'night', spendingLimit: { usd: 1_000, period: 'lifetime' as const } }
const system =
  'You sort the letters of a shop. Answer with the name of one shelf. The shelves are called orders, returns, ' +
  'invoices, praise, complaints, spam and other. If a letter belongs on two shelves, choose the first of them. '
/** The built-in model repeats words, so an answer has dozens of tokens. */
const words = 'one two three four five six seven eight nine ten '

/** Creates two batches, one in the format of each API, and kills processes until both have ended. */
export async function runKilledBatches(location: string, plan: KillPlan): Promise<KilledBatches> {
  const ids = await createBatches(location, plan.items)
  const killed = await killUntilEnded(location, plan)
  return new KilledBatches(location, plan, { ids, killed })
}

async function createBatches(location: string, items: number): Promise<readonly string[]> {
  const llm = await createLlm({
    ...{ engine: scriptedEngine(''), database: location, prices, batches: { run: false } },
  })
  try {
    const numbers = Array.from({ length: items }, (_, index) => index)
    const middle = Math.ceil(items / 2)
    const anthropic = await llm.batches.create(numbers.slice(0, middle).map(toAnthropicItem), { caller })
    const openai = await llm.batches.create(numbers.slice(middle).map(toOpenAiItem), {
      caller,
      format: 'openai',
    })
    return [anthropic.id, openai.id]
  } finally {
    await llm.close()
  }
}

const customIdOf = (number: number): string => `item-${number}`

const toParams = (number: number) => ({
  model: 'tiny',
  max_tokens: 40 + (number % 89),
  messages: [{ role: 'user', content: `Repeat: ${words.repeat(4)}${number}` }],
})

const toAnthropicItem = (number: number): object => ({
  custom_id: customIdOf(number),
  params: {
    ...toParams(number),
    system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
  },
})

function toOpenAiItem(number: number): object {
  const { messages, ...params } = toParams(number)
  return {
    ...{ custom_id: customIdOf(number), method: 'POST', url: '/v1/chat/completions' },
    body: { ...params, messages: [{ role: 'system', content: system }, ...messages] },
  }
}

/** Numbers of processes that were killed before the batches had ended. */
type KillCounts = Record<'app' | 'model', number>

/**
 * Kills after random numbers of items, so that the kills are spread over the whole run on a machine of any speed. Some
 * come during the start of an app, or during a load.
 */
async function killUntilEnded(
  location: string,
  { items, appKills, modelKills, apps: appCount }: KillPlan,
): Promise<KillCounts> {
  const random = randomOf(items + appKills)
  const kills = [...Array(appKills).fill('app'), ...Array(modelKills).fill('model')]
    .map((target: 'app' | 'model') => ({ target, afterItems: random() * items * 0.8 }))
    .sort((a, b) => a.afterItems - b.afterItems)
  const models = emptyFolder()
  const start = async (): Promise<KillableServer> => {
    const app = await startKillableServer(location, { callers: [caller], prices, models })
    onTestFinished(() => app.kill())
    return app
  }
  const store = await openDatabase(location)
  const apps = await Promise.all(Array.from({ length: appCount }, start))
  try {
    const readState = async (): Promise<{ ended: number; open: number }> => {
      const [row] = await store.query<{ ended: number; open: number }>(
        `SELECT sum(total - remaining) AS ended, sum(CASE status WHEN 'ended' THEN 0 ELSE 1 END) AS open
         FROM modelmount_batches`,
      )
      return { ended: Number(row?.ended), open: Number(row?.open) }
    }
    const until = async (isReached: (state: { ended: number; open: number }) => boolean): Promise<void> => {
      while (!isReached(await readState())) await delay(20)
    }
    const killed: KillCounts = { app: 0, model: 0 }
    for (const { target, afterItems } of kills) {
      await until(({ ended }) => ended >= afterItems)
      await delay(random() * 200)
      const index = Math.floor(random() * appCount)
      // Apps that have just started have no model process yet, and get none if the batches end before.
      if (target === 'model')
        while (!(await killModelProcess(apps)) && (await readState()).open > 0) await delay(20)
      else await apps[index]?.kill()
      if ((await readState()).open === 0) break
      killed[target]++
      if (target === 'app') apps[index] = await start()
    }
    await until(({ open }) => open === 0)
    return killed
  } finally {
    await Promise.all(apps.map((app) => app.kill()))
    await store.close()
  }
}

/** Returns false if no app has a model process. */
async function killModelProcess(apps: readonly KillableServer[]): Promise<boolean> {
  for (const app of apps) if (await app.killModelProcess()) return true
  return false
}

/** The result of one item, in the terms of both APIs. */
interface Result {
  readonly customId: string
  /** Undefined if the item has failed. */
  readonly answer: Answer | undefined
}

interface Answer {
  /** Id of the call. */
  readonly id: string
  readonly promptTokens: number
  /** Undefined in Anthropic's API, whose usage does not count all reused tokens. */
  readonly cachedTokens: number | undefined
  readonly outputTokens: number
}

/** What two batches have left, after their apps were killed. */
export class KilledBatches {
  readonly #location: string
  readonly #plan: KillPlan
  readonly #run: { readonly ids: readonly string[]; readonly killed: KillCounts }

  constructor(
    location: string,
    plan: KillPlan,
    run: { readonly ids: readonly string[]; readonly killed: KillCounts },
  ) {
    this.#location = location
    this.#plan = plan
    this.#run = run
  }

  /** Checks that each item has one result, and is charged once if it has succeeded. Returns a summary for the report. */
  async expectBilledOnce(): Promise<string> {
    const { killed, ids } = this.#run
    const { items, appKills, modelKills } = this.#plan
    expect(killed).toEqual({ app: appKills, model: modelKills })
    const llm = await createLlm({
      ...{ engine: scriptedEngine(''), database: this.#location, prices, batches: { run: false } },
    })
    onTestFinished(() => llm.close())
    await this.#expectNothingLeft()

    const results: Result[] = []
    for (const id of ids)
      for await (const { customId, outcome, line } of llm.batches.results(id)) {
        expect(outcome).toMatch(/^(succeeded|errored)$/)
        results.push({ customId, answer: outcome === 'succeeded' ? toAnswer(line) : undefined })
      }
    expect(results.map(({ customId }) => customId)).toEqual(
      Array.from({ length: items }, (_, number) => customIdOf(number)),
    )
    const answers = results.flatMap(({ answer }) => answer ?? [])
    const rows = await allCalls(llm)
    // A row for each answer, and none for a failed item.
    expect(rows.map(({ id }) => id).sort()).toEqual(answers.map(({ id }) => id).sort())
    const byId = new Map(rows.map((row) => [row.id, row]))
    let nanoUsd = 0n
    for (const answer of answers) nanoUsd += BigInt(costOf(answer, byId.get(answer.id) as CallRow))
    await this.#expectSpent(llm, { calls: answers.length, nanoUsd })

    const sum = (tokensOf: (row: CallRow) => number): number =>
      rows.reduce((all, row) => all + tokensOf(row), 0)
    const cached = sum(({ tokens }) => tokens.cachedInput)
    expect(cached).toBeGreaterThan(0)
    expect(sum(({ tokens }) => tokens.cacheWrite)).toBeGreaterThan(0)
    return (
      `${killed.app} kills of an app, ${killed.model} of a model process; ${results.length} results, ` +
      `${results.length - answers.length} of them errors; ${rows.length} rows in the ledger, ${cached} cached tokens; ` +
      `${nanoUsd} nano-dollars in the ledger and in the results.`
    )
  }

  /** Reservations of killed apps expire after 9 s. Items fail only after three crashes of the model process. */
  async #expectNothingLeft(): Promise<void> {
    const store = await openDatabase(this.#location)
    onTestFinished(() => store.close())
    const left = async (): Promise<unknown> => {
      const [row] = await store.query(
        `SELECT (SELECT count(*) FROM modelmount_funds) AS reservations,
           (SELECT count(*) FROM modelmount_batch_items WHERE status IN ('pending', 'running')) AS unfinished,
           (SELECT count(*) FROM modelmount_batch_items WHERE status = 'errored' AND crashes < 2) AS failed`,
      )
      return row
    }
    await expect.poll(left, { timeout: 20_000 }).toEqual({ reservations: 0, unfinished: 0, failed: 0 })
  }

  /** The report and the account have the sum of the results. */
  async #expectSpent(llm: Llm, { calls, nanoUsd }: { calls: number; nanoUsd: bigint }): Promise<void> {
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([
      { group: caller.id, calls, nanoUsd, batch: { calls, nanoUsd } },
    ])
    const store = await openDatabase(this.#location)
    onTestFinished(() => store.close())
    const accounts = await store.query('SELECT caller, lifetime_spent AS spent FROM modelmount_spending')
    expect(accounts).toEqual([{ caller: caller.id, spent: Number(nanoUsd) }])
  }
}

/** @param line in the format of Anthropic's or OpenAI's API */
function toAnswer(line: object): Answer {
  const { result, response } = line as {
    readonly result?: { readonly message: { readonly id: string; readonly usage: Record<string, number> } }
    readonly response: {
      readonly body: {
        readonly id: string
        readonly usage: {
          readonly prompt_tokens: number
          readonly completion_tokens: number
          readonly prompt_tokens_details: { readonly cached_tokens: number }
        }
      }
    }
  }
  if (result) {
    const { id, usage } = result.message
    const { input_tokens = 0, cache_creation_input_tokens = 0, cache_read_input_tokens = 0 } = usage
    expect(usage).toMatchObject({ service_tier: 'batch' })
    return {
      id: id.replace(/^msg_/, ''),
      promptTokens: input_tokens + cache_creation_input_tokens + cache_read_input_tokens,
      cachedTokens: undefined,
      outputTokens: usage.output_tokens ?? 0,
    }
  }
  const { id, usage } = response.body
  return {
    id: id.replace(/^chatcmpl-/, ''),
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
    outputTokens: usage.completion_tokens,
  }
}

/** Computes the cost of an answer from its usage, in nano-dollars. The row of the ledger must be the same. */
function costOf({ promptTokens, cachedTokens, outputTokens }: Answer, row: CallRow): number {
  const { input, cachedInput, cacheWrite, output } = row.tokens
  expect({ prompt: input + cachedInput + cacheWrite, output }).toEqual({
    prompt: promptTokens,
    output: outputTokens,
  })
  if (cachedTokens !== undefined)
    expect({ cachedInput, cacheWrite }).toEqual({ cachedInput: cachedTokens, cacheWrite: 0 })
  const millionths =
    BigInt(input) * toMillionths(rates.input) +
    BigInt(cachedInput) * toMillionths(rates.cachedInput) +
    BigInt(cacheWrite) * toMillionths(rates.cacheWrite) +
    BigInt(output) * toMillionths(rates.output)
  // Half the price, rounded once.
  const nanoUsd = Number((millionths + 1_000_000n) / 2_000_000n)
  expect(row).toMatchObject({ isBatch: true, isPriced: true, status: 'ended', caller: caller.id, nanoUsd })
  return nanoUsd
}

const toMillionths = (nanoUsd: number): bigint => BigInt(Math.round(nanoUsd * 1e6))
