/** The recorded calls of one file, in memory. */
import type { LoadedModel } from '../../engine/engine.ts'
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import { isRecord } from '../../util/is-record.ts'
import { describeDifference, findDifferences, measureDistance } from './differences.ts'
import type { RecordedEngineCall } from './recorded-call.ts'
import {
  type RecordedModel,
  type Recording,
  type RecordingFile,
  writeRecordingFile,
} from './recording-file.ts'

/** The part of a recording that replays. */
export type RecordedOutcome = Omit<Recording, 'method' | 'request'>

interface RecordedEntry extends RecordedEngineCall {
  /** Equal for equal requests of one method. */
  readonly key: string
  /** Undefined while the call is recorded, and if it was aborted. */
  outcome: RecordedOutcome | undefined
  /** Whether the file had the call at the start. Calls that are being recorded go to the engine, even repeated ones. */
  readonly isReplayable: boolean
  isReplayed: boolean
}

/** Differences that an error lists. */
const maxDifferences = 8

export class Recordings {
  readonly #path: string
  readonly #entries: RecordedEntry[]
  readonly #models: Map<string, RecordedModel>
  /** Names in requests of the models that replayed calls have loaded. */
  readonly #loaded = new Set<string>()

  constructor(path: string, file: RecordingFile | undefined) {
    this.#path = path
    this.#models = new Map(Object.entries(file?.models ?? {}))
    this.#entries = (file?.recordings ?? []).map(({ method, request, ...outcome }) => ({
      ...{ method, request, outcome },
      key: keyOf({ method, request }),
      isReplayable: true,
      isReplayed: false,
    }))
  }

  /**
   * Takes the next recording of a request. Each recording of `generate` is taken once. The last recording of any
   * other method repeats, because such a call has the same result again.
   */
  take(call: RecordedEngineCall): RecordedOutcome | undefined {
    const key = keyOf(call)
    const same = this.#entries.filter((entry) => entry.isReplayable && entry.key === key)
    const entry =
      same.find(({ isReplayed }) => !isReplayed) ?? (call.method === 'generate' ? undefined : same.at(-1))
    if (!entry) return undefined
    entry.isReplayed = true
    return entry.outcome
  }

  /** Marks what a replayed call does to the list of loaded models. */
  markReplayed({ method, request }: RecordedEngineCall): void {
    if (method === 'unload') this.#loaded.delete(String(request.model))
    else this.#loaded.add(String(request.model))
  }

  /**
   * Adds a call that begins. Recordings are in the order in which calls begin. The result stores the outcome of the
   * call, and writes the file.
   */
  begin(call: RecordedEngineCall): (outcome: RecordedOutcome, model: RecordedModel) => void {
    const entry: RecordedEntry = {
      ...{ method: call.method, request: call.request, key: keyOf(call) },
      ...{ outcome: undefined, isReplayable: false, isReplayed: false },
    }
    this.#entries.push(entry)
    return (outcome, model) => {
      const name = String(call.request.model)
      this.#models.set(name, toJson({ ...this.#models.get(name), ...model }))
      if (call.method === 'generate' || !this.#isRepeated(entry, outcome)) entry.outcome = toJson(outcome)
      this.#write()
    }
  }

  /** Recordings that no call has replayed. */
  unused(): readonly RecordedEngineCall[] {
    return this.#entries
      .filter(({ isReplayable, isReplayed }) => isReplayable && !isReplayed)
      .map(({ method, request }) => ({ method, request }))
  }

  findModel(name: string): Model | undefined {
    const found = this.#models.get(name)
    if (!found) return undefined
    const { contextSize: _, seesImages: __, details, ...model } = found
    return { ...recordedModel, ...model, ...(details && { details: { ...noDetails, ...details } }) } as Model
  }

  /** Whether a recorded request has images for the model. */
  seesImages(name: string): boolean {
    return this.#models.get(name)?.seesImages ?? false
  }

  loaded(): readonly LoadedModel[] {
    return [...this.#loaded].flatMap((requested) => {
      const { name, contextSize = 0 } = this.#models.get(requested) ?? {}
      return name === undefined ? [] : [{ ...loadedState, name, contextSize }]
    })
  }

  /** Says what differs from the nearest recording. */
  describeUnknown(call: RecordedEngineCall): LlmError {
    const { method, request } = call
    const repair =
      "To record it, set `mode: 'auto'` in recordingEngine(), or `mode: 'record'` to record all calls again."
    const known = this.#entries.filter((entry) => entry.outcome && entry.method === method)
    const candidates = known.map((entry) => ({
      index: this.#entries.indexOf(entry),
      differences: findDifferences(entry.request, request),
    }))
    const [nearest] = candidates.sort(
      (a, b) => measureDistance(a.differences) - measureDistance(b.differences) || a.index - b.index,
    )
    if (!nearest) return unknownCall(`${this.#path}: no recording of \`${method}\`. ${repair}`)
    const { index, differences } = nearest
    if (differences.length === 0) {
      const count = candidates.filter((one) => one.differences.length === 0).length
      return unknownCall(
        `${this.#path}: this \`${method}\` request is recorded ${count === 1 ? 'once' : `${count} times`}, and was already replayed. ${repair}`,
      )
    }
    const lines = differences.slice(0, maxDifferences).map(describeDifference)
    const more = differences.length - lines.length
    return unknownCall(
      [
        `${this.#path}: no recording of this \`${method}\` request. The nearest one, recordings[${index}], differs in:`,
        ...lines.map((line) => `  ${line}`),
        ...(more > 0 ? [`  and ${more} more`] : []),
        repair,
      ].join('\n'),
    )
  }

  #isRepeated(entry: RecordedEntry, outcome: RecordedOutcome): boolean {
    const last = this.#entries.findLast((one) => one.outcome && one.key === entry.key)
    return last !== undefined && findDifferences(last.outcome, toJson(outcome)).length === 0
  }

  #write(): void {
    const recordings = this.#entries.flatMap(({ method, request, outcome }) =>
      outcome ? [{ method, request, ...outcome }] : [],
    )
    try {
      writeRecordingFile(this.#path, {
        version: 1,
        models: sortKeys(Object.fromEntries(this.#models)) as RecordingFile['models'],
        recordings,
      })
    } catch (cause) {
      throw new LlmError('internal', `${this.#path}: ${(cause as Error).message}`, { setup: true }, { cause })
    }
  }
}

/** Copies a request or an outcome as JSON with sorted keys, as it is in the file. */
export const toJson = <Value>(value: Value): Value => sortKeys(JSON.parse(JSON.stringify(value))) as Value

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  )
}

const keyOf = ({ method, request }: RecordedEngineCall): string =>
  `${method} ${JSON.stringify(sortKeys(request))}`

/** A replayed model has no weights. */
const recordedModel = {
  path: '',
  isIncomplete: true,
  sizeBytes: 0,
  modifiedAt: new Date(0),
  digest: '',
  isBuiltIn: false,
} as const

const noDetails = { parameterCount: 0, parameterSize: '', quantization: 'unknown', metadata: {}, tensors: [] }

const loadedState = { state: 'ready', sizeBytes: 0, gpuBytes: 0, expiresAt: 'never' } as const

const unknownCall = (message: string): LlmError => new LlmError('internal', message, { setup: true })
