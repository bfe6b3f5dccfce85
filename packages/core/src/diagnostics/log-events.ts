/** Logs what happens to models and calls, from the events of the diagnostics channels. */
import type { ReplicaEvent } from '../engine/replicas.ts'
import { type Logger, type ReportError, withFields } from '../logger.ts'
import { subscribe } from './channels.ts'
import type { CallOver, DiagnosedCall } from './events.ts'

interface LogEventsOptions {
  readonly logger: Logger
  /** Whether each call has a line. */
  readonly accessLog: boolean
  /** Logs errors that no client can correct. */
  readonly report: ReportError
}

/** Returns a function that ends it. */
export function logEvents(llm: object, { logger, accessLog, report }: LogEventsOptions): () => void {
  const logCall = (event: CallOver & { readonly status: string }, code?: string): void => {
    const line = withFields(logger, toLogFields(event.call))
    line.info?.(toAccessFields(event, code), `call ${event.status}`)
  }
  return subscribe(llm, {
    'modelmount:model:load': ({ llm: _, loadMs, notes: __, ...model }) =>
      logger.info?.({ ...model, loadMs: round(loadMs) }, 'model loaded'),
    'modelmount:model:unload': (event) => logger.info?.(toModelFields(event), 'model unloaded'),
    'modelmount:model:evict': (event) => logger.info?.(toModelFields(event), 'model evicted'),
    'modelmount:model:crash': (event) => logger.error(toModelFields(event), 'model process crashed'),
    'modelmount:replica:join': (event) => logger.info?.(toReplicaFields(event), 'replica joined'),
    'modelmount:replica:leave': (event) => logger.info?.(toReplicaFields(event), 'replica left'),
    'modelmount:replica:eject': (event) => logger.warn(toReplicaFields(event), 'replica ejected'),
    'modelmount:replica:return': (event) => logger.info?.(toReplicaFields(event), 'replica returned'),
    'modelmount:call:error': (event) => {
      const { call, error, status } = event
      // The app handles the errors of its own calls. After an abort, most errors are caused by the abort.
      if (call.requestId !== undefined && status === 'failed') report(error, toLogFields(call))
      if (accessLog) logCall(event, error.code)
    },
    ...(accessLog && { 'modelmount:call:end': (event) => logCall(event) }),
  })
}

/** The fields of all lines about a call. */
export const toLogFields = ({ id, requestId, key, tenant, model, ...call }: DiagnosedCall): object =>
  defined({
    ...{ callId: id, requestId, key },
    ...{ tenant: tenant || undefined, model: model || undefined },
    ...{ kind: call.kind, dialect: call.dialect, route: call.route },
    isBatchItem: call.isBatchItem || undefined,
  })

function toAccessFields(event: CallOver & { readonly status: string }, code: string | undefined): object {
  const { status, usage, finishReasons, durationMs, queueMs, firstTokenMs } = event
  return defined({
    ...{ status, code },
    durationMs: round(durationMs),
    queueMs: round(queueMs),
    firstTokenMs: round(firstTokenMs),
    inputTokens: usage?.inputTokens,
    reusedTokens: usage?.reusedTokens,
    outputTokens: usage?.outputTokens,
    finishReasons: finishReasons.some(Boolean) ? finishReasons : undefined,
  })
}

const toModelFields = (event: {
  readonly model: string
  readonly processId: number | undefined
  readonly reason: string | undefined
  readonly loadedMs: number
}): object =>
  defined({
    ...{ model: event.model, processId: event.processId, reason: event.reason },
    loadedMs: round(event.loadedMs),
  })

const toReplicaFields = ({ engine, url, failure }: Omit<ReplicaEvent, 'type'>): object =>
  defined({ engine, url, failure })

/** To tenths of a millisecond. */
function round(ms: number): number
function round(ms: number | undefined): number | undefined
function round(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10
}

const defined = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
