/** The alert rules of the documentation, evaluated by `promtool` over the series of twenty minutes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { hasPrometheus, promtool } from '../support/prometheus.ts'
import { alertsFile } from './dashboard.ts'

const [calls, firstToken] = ['modelmount_calls_total', 'modelmount_time_to_first_token_seconds_bucket']
const of = (labels: string) => `{job="modelmount", instance="app", model="tiny:latest", ${labels}}`

/** Values every 15 s, in the notation of `promtool test rules`: start, increase and number. */
const healthy: Readonly<Record<string, string>> = {
  [`up${of('')}`]: '1x80',
  [`modelmount_model_ends_total${of('reason="crash"')}`]: '0x80',
  [`${calls}${of('status="ended", reason="stop"')}`]: '0+10x80',
  [`${calls}${of('status="failed", reason="internal"')}`]: '0x80',
  // Mistakes of clients, however many there are.
  [`${calls}${of('status="failed", reason="invalid_request"')}`]: '0+10x80',
  [`${firstToken}${of('le="1"')}`]: '0+20x80',
  [`${firstToken}${of('le="10"')}`]: '0+20x80',
  [`${firstToken}${of('le="30"')}`]: '0+20x80',
  [`${firstToken}${of('le="+Inf"')}`]: '0+20x80',
  // A short queue at each fifth minute.
  [`modelmount_calls_waiting${of('')}`]: '0x19 50 0x19 50 0x19 50 0x20',
  [`modelmount_model_loaded${of('')}`]: '1x80',
  [`modelmount_model_vram_bytes${of('')}`]: '1000000x80',
  [`modelmount_event_loop_delay_seconds${of('percentile="99"')}`]: '0.01x80',
  [`modelmount_spend_usd_total${of('')}`]: '0+0.01x80',
}

const troubled: Readonly<Record<string, string>> = {
  ...healthy,
  [`up${of('')}`]: '0x80',
  [`modelmount_model_ends_total${of('reason="crash"')}`]: '0x40 1x40',
  [`${calls}${of('status="failed", reason="internal"')}`]: '0+5x80',
  [`${firstToken}${of('le="1"')}`]: '0+1x80',
  [`${firstToken}${of('le="10"')}`]: '0+5x80',
  [`modelmount_calls_waiting${of('')}`]: '20x80',
  [`modelmount_model_vram_bytes${of('')}`]: '0x80',
  [`modelmount_event_loop_delay_seconds${of('percentile="99"')}`]: '0.5x80',
  [`modelmount_spend_usd_total${of('')}`]: '0+1x80',
}

const alerts =
  'BusyEventLoop Down Failures ModelCrashes ModelOnProcessor Queue SlowFirstToken Spending'.split(' ')

test.runIf(hasPrometheus).each([
  { name: 'none for a healthy app', series: healthy, firing: [] },
  { name: 'all for an app with every problem', series: troubled, firing: alerts },
])('the alerts fire: $name', ({ series, firing }) => {
  const file = join(emptyFolder(), 'test.yml')
  const rules = {
    rule_files: [alertsFile],
    evaluation_interval: '15s',
    tests: [
      {
        interval: '15s',
        input_series: Object.entries(series).map(([series, values]) => ({ series, values })),
        promql_expr_test: [
          {
            expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
            eval_time: '20m',
            exp_samples: firing.map((name) => ({ labels: `{alertname="Modelmount${name}"}`, value: 1 })),
          },
        ],
      },
    ],
  }
  // YAML contains JSON.
  writeFileSync(file, JSON.stringify(rules))

  expect(promtool(['test', 'rules', file]).output).toMatch(/SUCCESS\s*$/)
})
