/**
 * Twenty tenants use the built-in model for ten minutes: eight polite ones, and twelve that are endless, slow,
 * hostile or gone. The polite ones are measured alone first, with the same load.
 */
import { fork } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type MeasuredApp, startMeasuredApp } from '../support/measured-app.ts'
import { residentBytes } from '../support/processes.ts'
import { randomOf } from '../support/random.ts'
import { type Outcome, Outcomes, percentile } from './storm/outcomes.ts'
import { runPoliteTenant } from './storm/polite.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Text for the report of `npm run test:long`. */
    report?: string
  }
}

/** The first calls compile code, and are not measured. */
const warmUpMs = 5_000
const aloneMs = 175_000
const stormMs = 600_000
/** Memory is compared with its size at this time of the storm. */
const warmMs = stormMs / 5

const hostile = [
  ...['endless', 'endless', 'slowReader', 'slowReader', 'slowWriter', 'slowWriter'],
  ...['hostileSchema', 'hostileText', 'contextChanger', 'contextChanger', 'leaver', 'leaver'],
]

/** Outcomes that each kind of hostile tenant must have. Without them, it has not disturbed the others. */
const intended: Readonly<Record<string, readonly string[]>> = {
  endless: ['streamed 250 events'],
  'slow reader': ['read slowly or read slowly, was disconnected', 'stopped reading, was disconnected'],
  'slow writer': ['sent slowly'],
  'hostile schema': ['answered or 400'],
  'hostile text': ['answered or 400', 'counted'],
  'context changer': ['answered'],
  leaver: ['left before the first token', 'left during the answer'],
}

const hostileFile = fileURLToPath(new URL('storm/hostile.mjs', import.meta.url))
const models = emptyFolder()
let app: MeasuredApp

beforeAll(async () => {
  app = await startMeasuredApp(models)
})

afterAll(() => app.close())

/** How long the memory is read, in ms. V8 gives memory back some time after a collection. */
const memoryMs = 20_000
const readings = 10

/** Smallest resident memory of the app and of the model process, and the app's live objects, in MB. */
async function memory() {
  const { heapBytes, modelProcesses } = await app.measure()
  let smallest = [app.processId, ...modelProcesses].map(() => Number.POSITIVE_INFINITY)
  for (let reading = 0; reading < readings; reading++) {
    await delay(memoryMs / readings)
    const now = [app.processId, ...modelProcesses].map((id) => residentBytes(id) / 1e6)
    smallest = smallest.map((size, index) => Math.min(size, now[index] as number))
  }
  return { resident: smallest, liveMb: heapBytes / 1024 ** 2 }
}

/** One generator for all runs, so that no run repeats the prompts of an earlier one. */
const random = randomOf(7)

/** Runs the polite tenants for a time, and the hostile ones beside them. */
async function run(hostile: readonly string[], limitMs: number): Promise<Outcomes> {
  const outcomes = new Outcomes()
  const signal = AbortSignal.timeout(limitMs)
  // Each open call listens.
  setMaxListeners(0, signal)
  const others = fork(hostileFile, [app.url, app.socketPath, ...hostile], { execArgv: [] })
  others.on('message', ({ kind, outcome }: { kind: string; outcome: Outcome }) => outcomes.add(kind, outcome))
  await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      runPoliteTenant({ url: app.url, outcomes, signal, random }, `polite-${index}`),
    ),
  )
  const hasFailed = others.exitCode !== null
  others.kill()
  if (hasFailed) throw new Error('The process of the hostile tenants has ended.')
  return outcomes
}

const listCounts = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .map(([name, count]) => `${name}: ${count}`)
    .toSorted()
    .join('; ')

/** Intended outcomes that no hostile tenant had. */
const findMissing = ({ counts }: Outcomes): readonly string[] =>
  Object.entries(intended).flatMap(([kind, outcomes]) =>
    outcomes
      .filter((outcome) => !outcome.split(' or ').some((name) => counts.get(kind)?.has(name)))
      .map((outcome) => `${kind}: ${outcome}`),
  )

test(
  'polite tenants get their first tokens almost as fast as without the storm',
  async ({ task }) => {
    await run([], warmUpMs)
    const alone = await run([], aloneMs)
    const before = await app.measure()
    const running = run(hostile, stormMs)
    await delay(warmMs)
    const early = await memory()
    await delay(stormMs - warmMs - 3 * memoryMs)
    const late = await memory()
    const after = await app.measure()
    const storm = await running

    const growth = late.resident.map((size, index) => size - (early.resident[index] as number))
    const ratio = (share: number): number =>
      percentile(storm.firstTokensMs, share) / percentile(alone.firstTokensMs, share)
    const row = (name: string, { firstTokensMs }: Outcomes): string =>
      `| ${[name, firstTokensMs.length, ...[0.5, 0.99].map((share) => percentile(firstTokensMs, share).toFixed(0))].join(' | ')} |`
    task.meta.report = [
      '| Polite tenants | Calls | First token, median, ms | p99, ms |',
      '| --- | ---: | ---: | ---: |',
      row('alone', alone),
      row('during the storm', storm),
      `| ratio | | ${ratio(0.5).toFixed(2)} | ${ratio(0.99).toFixed(2)} |`,
      '',
      `Resident memory of the app and of the model process: ${early.resident.map(Math.round).join(' and ')} MB after two minutes, ${late.resident.map(Math.round).join(' and ')} MB at the end. Live objects of the app: ${early.liveMb.toFixed(0)} and ${late.liveMb.toFixed(0)} MB. 99th percentile of the app's event loop delay: ${after.loopDelayMs.toFixed(1)} ms.`,
      '',
      '| Tenants | Outcomes during the storm |',
      '| --- | --- |',
      ...[...storm.counts].map(([kind, counts]) => `| ${kind} | ${listCounts(counts)} |`).toSorted(),
    ].join('\n')

    expect([...storm.forbidden]).toEqual([])
    expect(findMissing(storm)).toEqual([])
    // Of fewer calls, the 99th percentile would be chance.
    expect(alone.firstTokensMs.length).toBeGreaterThanOrEqual(500)
    // No crash and no reload.
    expect(after.modelProcesses).toEqual(before.modelProcesses)
    expect(ratio(0.5)).toBeLessThanOrEqual(3)
    expect(ratio(0.99)).toBeLessThanOrEqual(10)
    for (const grown of growth) expect(grown).toBeLessThanOrEqual(50)
    expect(late.liveMb - early.liveMb).toBeLessThanOrEqual(20)
  },
  warmUpMs + aloneMs + stormMs + 60_000,
)
