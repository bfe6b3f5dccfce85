import { Registry } from 'prom-client'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import { metrics } from './definitions.ts'
import { registerMetrics } from './index.ts'

const llms: Llm[] = []
afterEach(async () => {
  for (const llm of llms.splice(0)) await llm.close()
})

async function start(options: LlmOptions = {}) {
  const llm = await createLlm({
    engine: scriptedEngine('one two three'),
    models: emptyFolder(),
    ...options,
  })
  llms.push(llm)
  const registry = new Registry()
  onTestFinished(registerMetrics(llm, registry))
  /** The lines of a metric, without its name. */
  const read = async (name: string): Promise<readonly string[]> =>
    (await registry.getSingleMetricAsString(name))
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => line.replace(name, ''))
  return { llm, registry, read }
}

test('a call counts by route, kind, model, status and reason, with its times and tokens', async () => {
  const { llm, read } = await start()

  await llm.chat('Hello', { model: 'tiny' })

  expect(await read('modelmount_calls_total')).toEqual([
    '{route="in-process",kind="generate",model="tiny:latest",status="ended",reason="stop"} 1',
  ])
  expect(await read('modelmount_decode_tokens_total')).toEqual(['{model="tiny:latest"} 3'])
  expect(await read('modelmount_prefill_tokens_total')).toEqual(['{model="tiny:latest"} 1'])
  for (const name of ['time_to_first_token', 'time_per_output_token', 'call_duration', 'queue_time'])
    expect((await read(`modelmount_${name}_seconds`)).find((line) => line.includes('_count'))).toMatch(/ 1$/)
  for (const name of ['calls_active', 'calls_waiting', 'prompt_cache_hit_tokens_total'])
    expect(await read(`modelmount_${name}`)).toEqual(['{model="tiny:latest"} 0'])
})

test('a call that fails counts with its error code, and one that its reader leaves as aborted', async () => {
  const scripted = scriptedEngine('one two three')
  let hasFailed = false
  const failOnce: Engine['generate'] = (...given) => {
    if (hasFailed) return scripted.generate(...given)
    hasFailed = true
    return failing()
  }
  const { llm, read } = await start({ engine: { ...scripted, generate: failOnce } })

  await llm.chat('Hello', { model: 'tiny' }).catch(() => {})
  for await (const _ of llm.chat('Hello', { model: 'tiny', stream: true })) break

  expect(await read('modelmount_calls_total')).toEqual([
    '{route="in-process",kind="generate",model="tiny:latest",status="failed",reason="upstream"} 1',
    '{route="in-process",kind="generate",model="tiny:latest",status="aborted",reason=""} 1',
  ])
})

// biome-ignore lint/correctness/useYield: an engine that fails before its first event
async function* failing(): AsyncGenerator<never> {
  throw new LlmError('upstream', 'The model is broken.')
}

test('all unknown models share one label, also when there are thousands', async () => {
  const { llm, read } = await start()

  for (let index = 0; index < 200; index++) await llm.chat('Hello', { model: `made-up-${index}` })

  expect(await read('modelmount_decode_tokens_total')).toEqual(['{model="unknown"} 600'])
})

test('the limiter counts what it admits, and what it refuses by the limit', async () => {
  const { llm, read } = await start()
  const caller = { id: 'ann', limits: { requestsPerMinute: 1 } }

  await llm.chat('Hello', { model: 'tiny', caller })
  await llm.chat('Hello', { model: 'tiny', caller }).catch(() => {})

  expect(await read('modelmount_limiter_decisions_total')).toEqual([
    '{decision="admitted",limit=""} 1',
    '{decision="refused",limit="requests"} 1',
  ])
})

test('spending counts in dollars', async () => {
  const prices = { tiny: { inputPerMillionUsd: 1_000, outputPerMillionUsd: 2_000 } }
  const { llm, read } = await start({ database: ':memory:', prices })

  await llm.chat('Hello', { model: 'tiny' })
  await llm.chat('Hello', { model: 'tiny' })

  expect(await read('modelmount_spend_usd_total')).toEqual(['{model="tiny:latest"} 0.014'])
})

test('no label has the id of a caller, a tenant, an end user or a request', async () => {
  const { llm, registry } = await start()

  await llm.chat('Hello', { model: 'tiny', caller: { id: 'canary-caller', tenant: 'canary-tenant' } })

  expect(await registry.metrics()).not.toContain('canary')
})

test('a second Llm in the same registry is an error that names the way out', async () => {
  const { registry } = await start()
  const other = await createLlm({ engine: scriptedEngine(''), models: [] })
  llms.push(other)

  expect(() => registerMetrics(other, registry)).toThrow(
    'in a separate registry, and serve it on another path',
  )
})

test('the returned function removes the metrics, and the registry can have them again', async () => {
  const llm = await createLlm({ engine: scriptedEngine('one'), models: [] })
  llms.push(llm)
  const registry = new Registry()

  registerMetrics(llm, registry)()

  expect(await registry.metrics()).toBe('\n')
  onTestFinished(registerMetrics(llm, registry))
  expect(registry.getMetricsAsArray()).toHaveLength(Object.keys(metrics).length)
})

test('usage that an engine reports wrongly does not end the app', async () => {
  const scripted = scriptedEngine('one')
  const { llm, read } = await start({
    engine: {
      ...scripted,
      async *generate(request, call) {
        for await (const event of scripted.generate(request, call))
          yield event.type === 'end'
            ? { ...event, usage: { ...event.usage, inputTokens: 2, reusedTokens: 5 } }
            : event
      },
    },
  })

  await llm.chat('Hello', { model: 'tiny' })

  expect(await read('modelmount_prompt_cache_hit_tokens_total')).toEqual(['{model="tiny:latest"} 2'])
})
