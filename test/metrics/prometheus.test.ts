/** A real Prometheus scrapes an app with the built-in model. Its figures are compared with those of the clients. */
import { metrics } from '@modelmount/core/metrics'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { hasPrometheus, type Prometheus, promtool, startPrometheus } from '../support/prometheus.ts'
import { alertExpressions, alertsFile, panelExpressions, variableExpressions } from './dashboard.ts'
import { withoutVariables } from './expressions.ts'
import { LoadGenerator, type MeasuredCall, quantile, sumOf } from './load.ts'
import { type MeteredApp, startMeteredApp } from './metered-app.ts'

const clients = 3
const isThorough = inject('isThorough')

/**
 * The app sees less of a call than the client: not the request until the app reads it, nor the last bytes until the client
 * reads them, while the model processes keep both cores busy. Measured: 7 to 18 ms of calls of 0.9 to 2 s.
 */
const tolerance = 0.05

describe.runIf(hasPrometheus)('a real Prometheus', () => {
  let app: MeteredApp
  let prometheus: Prometheus
  let calls: readonly MeasuredCall[]
  let streams: readonly MeasuredCall[]
  /** Unix time before the measured calls, in seconds. */
  let startedAt: number
  const folder = emptyFolder()

  beforeAll(async () => {
    app = await startMeteredApp(folder)
    prometheus = await startPrometheus(app.url)
    const load = new LoadGenerator(app.url)
    // Calls before the code is compiled wait for up to 100 ms in the sockets.
    await load.run(clients, isThorough ? 5 : 1)
    await prometheus.scraped()
    startedAt = Date.now() / 1_000
    calls = await load.run(clients, isThorough ? 25 : 2)
    streams = calls.filter(({ isStream }) => isStream)
    await prometheus.scraped()
  }, 120_000)
  afterAll(async () => {
    await prometheus?.close()
    await app?.close()
  })

  const single = async (expression: string): Promise<number> => {
    const samples = await prometheus.query(expression)
    expect(samples, expression).toHaveLength(1)
    return samples[0]?.value as number
  }
  /** What the measured calls have added to the series of a selector. */
  const added = (selector: string, by = ''): string =>
    `(sum ${by} (${selector}) - sum ${by} (${selector} @ ${startedAt}))`

  test('has the exact counts of the clients', async () => {
    const [inputTokens, outputTokens] = (['inputTokens', 'outputTokens'] as const).map((name) =>
      sumOf(calls.map((call) => call[name])),
    )
    const expected = {
      'modelmount_calls_total{status="ended"}': calls.length,
      'modelmount_http_responses_total{code="200", route!="/metrics"}': calls.length,
      modelmount_call_duration_seconds_count: calls.length,
      modelmount_queue_time_seconds_count: calls.length,
      'modelmount_time_to_first_token_seconds_count{model="tiny:latest"}': streams.length,
      modelmount_prefill_tokens_total: inputTokens,
      modelmount_decode_tokens_total: outputTokens,
    }
    expect(streams.length).toBeGreaterThan(1)
    expect(calls.length).toBeGreaterThan(streams.length)

    const counted = Object.keys(expected).map(async (name) => [name, await single(added(name))] as const)

    expect(Object.fromEntries(await Promise.all(counted))).toEqual(expected)
  })

  // Other work on the machine delays the clients of a sample by more than its few calls take.
  if (isThorough) {
    test('has sums within 5 % of the clients', async ({ task }) => {
      const differs = async (name: string, values: readonly number[]) => {
        const sumMs = 1_000 * (await single(added(name)))
        const differenceMs = sumOf(values) - sumMs
        report.push([name, values.length, sumOf(values), sumMs, differenceMs / values.length])
        expect(Math.abs(differenceMs), name).toBeLessThan(tolerance * sumOf(values))
      }
      const report: (readonly [string, ...number[]])[] = []
      const durationsOf = (some: readonly MeasuredCall[]) => some.map(({ durationMs }) => durationMs)

      await differs('modelmount_call_duration_seconds_sum{model="tiny:latest"}', durationsOf(streams))
      await differs(
        'modelmount_call_duration_seconds_sum{model="plain:latest"}',
        durationsOf(calls.filter(({ isStream }) => !isStream)),
      )
      await differs(
        'modelmount_time_to_first_token_seconds_sum{model="tiny:latest"}',
        streams.map(({ firstTokenMs = 0 }) => firstTokenMs),
      )
      task.meta.report = table(report)
    })

    test.runIf(isThorough).each([0.5, 0.9, 0.99])(
      'has the quantile %d of the clients in the right bucket',
      async (share) => {
        await expectBucket(
          'modelmount_call_duration_seconds',
          share,
          streams.map(({ durationMs }) => durationMs),
        )
        await expectBucket(
          'modelmount_time_to_first_token_seconds',
          share,
          streams.map(({ firstTokenMs = 0 }) => firstTokenMs),
        )
      },
    )
  }

  async function expectBucket(
    name: 'modelmount_call_duration_seconds' | 'modelmount_time_to_first_token_seconds',
    share: number,
    values: readonly number[],
  ): Promise<void> {
    const buckets = added(`${name}_bucket{model="tiny:latest"}`, 'by (le)')
    const foundMs = 1_000 * (await single(`histogram_quantile(${share}, ${buckets})`))
    const measuredMs = quantile(values, share)
    const boundsMs = [0, ...metrics[name].buckets.map((bound) => 1_000 * bound), Number.POSITIVE_INFINITY]
    // The app sees each call a little shorter than the client, so a value above a bound may be below it there.
    const lower = boundsMs.findLast((bound) => bound < measuredMs * (1 - tolerance)) ?? 0
    const upper = boundsMs.find((bound) => bound >= measuredMs) as number
    expect(foundMs, `${name}: ${measuredMs} ms`).toBeGreaterThanOrEqual(lower)
    expect(foundMs, `${name}: ${measuredMs} ms`).toBeLessThanOrEqual(upper)
  }

  test('has every documented metric, and promtool accepts their names and units', async () => {
    await app.doEverything()
    const findMissing = async () => {
      const series = Object.entries(metrics).map(async ([name, { type }]) => {
        const samples = await prometheus.query(type === 'histogram' ? `${name}_bucket` : name)
        return samples.length === 0 ? [name] : []
      })
      return (await Promise.all(series)).flat()
    }

    // A model process reports its memory some time after its start.
    await expect.poll(findMissing, { timeout: 20_000, interval: 500 }).toEqual([])
    const text = await app.metrics()
    expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' })
    expect(text).not.toContain('no-such-model')
    expect(await single('sum(modelmount_model_ends_total{reason="crash"})')).toBeGreaterThanOrEqual(2)
  })

  test('evaluates all expressions of the dashboard and the alert rules', async () => {
    for (const expression of [...panelExpressions, ...variableExpressions, ...alertExpressions])
      await prometheus.query(withoutVariables(expression))
    await expect(prometheus.query('sum(')).rejects.toThrow('parse error')
  })
})

const table = (rows: readonly (readonly [string, ...number[]])[]): string =>
  [
    '| Sum | Calls | Clients, ms | Prometheus, ms | Difference per call, ms |',
    '| --- | ---: | ---: | ---: | ---: |',
    ...rows.map(
      ([name, count, ...values]) =>
        `| \`${name}\` | ${count} | ${values.map((value) => value.toFixed(1)).join(' | ')} |`,
    ),
  ].join('\n')

test.runIf(hasPrometheus)('promtool accepts the alert rules', () => {
  const { status, output } = promtool(['check', 'rules', '--lint=all', '--lint-fatal', alertsFile])

  expect(output).toContain('8 rules found')
  expect(status).toBe(0)
})
