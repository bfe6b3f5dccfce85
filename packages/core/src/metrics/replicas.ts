/** Metrics of the replicas of fleets, which the engines count. */
import type { ReplicaState, ReplicaStatus } from '../engine/replicas.ts'
import { internals, type Llm } from '../llm.ts'
import type { Instruments } from './instruments.ts'

type ReplicaLabels = Readonly<Record<'engine' | 'replica', string>>

const states = Object.keys({
  ready: true,
  starting: true,
  overloaded: true,
  ejected: true,
  draining: true,
} satisfies Record<ReplicaState, true>)

const gauges = {
  modelmount_replica_running_calls: 'runningCalls',
  modelmount_replica_outstanding_tokens: 'outstandingTokens',
} as const
const totals = {
  modelmount_replica_calls_total: 'calls',
  modelmount_replica_failed_calls_total: 'failedCalls',
  modelmount_replica_input_tokens_total: 'inputTokens',
  modelmount_replica_cached_tokens_total: 'cachedTokens',
  modelmount_replica_ejections_total: 'ejections',
} as const

type NumberField = (typeof gauges)[keyof typeof gauges] | (typeof totals)[keyof typeof totals]

/** These series exist in apps with a fleet only. */
export function registerReplicas(llm: Llm, instruments: Instruments): void {
  const replicas = (): readonly ReplicaStatus[] => llm[internals].replicas()
  const read = (field: NumberField) =>
    replicas().map((replica) => [labelsOf(replica), replica[field]] as const)
  instruments.gauge('modelmount_replica_state', () =>
    replicas().flatMap((replica) =>
      states.map((state) => [{ ...labelsOf(replica), state }, state === replica.state ? 1 : 0] as const),
    ),
  )
  for (const [name, field] of Object.entries(gauges))
    instruments.gauge(name as keyof typeof gauges, () => read(field))
  for (const [name, field] of Object.entries(totals))
    instruments.total(name as keyof typeof totals, () => read(field))
}

const labelsOf = ({ engine = '', url }: ReplicaStatus): ReplicaLabels => ({ engine, replica: url })
