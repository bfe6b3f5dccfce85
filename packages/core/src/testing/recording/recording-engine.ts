/** Records the answers of an engine, and replays them without a model. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../../engine/embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../../engine/engine.ts'
import type { GenerateEvent } from '../../engine/events.ts'
import type { GenerateRequest, LoadOptions } from '../../engine/request.ts'
import { imagesOf } from '../../engine/request-input.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../../engine/tokens.ts'
import { LlmError, type LlmErrorCode } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import { checkKeys, describeValue } from '../../options/check.ts'
import type { EngineMethod, RecordedEngineCall } from './recorded-call.ts'
import { type RecordedModel, readRecordingFile } from './recording-file.ts'
import { type RecordedOutcome, Recordings, toJson } from './recordings.ts'

const modes = ['replay', 'auto', 'record'] as const

/** Options of `recordingEngine()`. */
export interface RecordingOptions {
  /**
   * `replay` answers from the file only. `auto` answers from the file, and records what the file does not have.
   * `record` records all calls again, and replaces the file.
   *
   * @default 'replay'
   */
  readonly mode?: (typeof modes)[number]
  /**
   * Maps each request before it is matched and stored. Use it to remove what differs in each run, such as a date,
   * or what must not be stored. The engine gets the original request.
   *
   * @default requests are matched and stored as they are
   */
  readonly normalize?: (request: RecordableRequest) => object
}

export type RecordableRequest =
  | GenerateRequest
  | EmbedRequest
  | RerankRequest
  | TokenizeRequest
  | DetokenizeRequest
  | { readonly model: string; readonly load?: LoadOptions }

/** An engine that replays calls from a file. */
export interface RecordingEngine extends Engine {
  /** Recorded calls that have not been replayed. */
  unused(): readonly RecordedEngineCall[]
}

/**
 * Creates an engine that records the calls of another engine in a file, and replays them. It needs no model to
 * replay.
 * - A call matches a recording with the same method and the same request. The caller, the tenant and the signal do
 *   not matter. Equal requests of `generate` replay in the order of their recordings, each once.
 * - Errors are recorded. Aborted calls are not.
 * - Durations are not recorded: `timings` are those of the replay.
 *
 * Throws a `TypeError` for an invalid option or file, and if there is no file to replay. An unknown request gets an
 * `LlmError` `internal` that names what differs from the nearest recording.
 *
 * @param engine records. With the mode `replay`, it may be undefined
 * @param file path of a JSON file. Only one engine may record to it at a time
 */
export function recordingEngine(
  engine: Engine | undefined,
  file: string,
  options: RecordingOptions = {},
): RecordingEngine {
  checkKeys('', options, ['mode', 'normalize'])
  const { mode = 'replay', normalize = (request: RecordableRequest) => request } = options
  if (!modes.includes(mode))
    throw new TypeError(`Expected \`mode\` to be one of ${modes.join(', ')}, got ${describeValue(mode)}`)
  if (mode !== 'replay' && !engine)
    throw new TypeError(`Expected an engine, which the mode '${mode}' records`)
  const recorded = mode === 'record' ? undefined : readRecordingFile(file)
  if (mode === 'replay' && !recorded)
    throw new TypeError(`${file}: the file to replay does not exist. Set \`mode: 'auto'\` to record it.`)
  return new Recorder({ engine, mode, normalize, recordings: new Recordings(file, recorded) })
}

interface RecorderParts extends Required<RecordingOptions> {
  readonly engine: Engine | undefined
  readonly recordings: Recordings
}

class Recorder implements RecordingEngine {
  /** Undefined if nothing is recorded. */
  readonly #recorder: Engine | undefined
  readonly #engine: Engine | undefined
  readonly #recordings: Recordings
  readonly #normalize: Required<RecordingOptions>['normalize']

  constructor({ engine, mode, normalize, recordings }: RecorderParts) {
    this.#engine = engine
    this.#recorder = mode === 'replay' ? undefined : engine
    this.#recordings = recordings
    this.#normalize = normalize
  }

  async *generate(request: GenerateRequest, call: EngineCall): AsyncGenerator<GenerateEvent> {
    const recordedCall = this.#toRecordedCall('generate', request, call)
    const outcome = this.#recordings.take(recordedCall)
    if (outcome) yield* this.#replayEvents(recordedCall, outcome, call.signal)
    else yield* this.#recordEvents(recordedCall, request, call)
  }

  countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run('countTokens', request, call, (engine) => engine.countTokens(request, call))
  }

  render(request: GenerateRequest, call: EngineCall): Promise<string> {
    return this.#run('render', request, call, (engine) => engine.render(request, call))
  }

  async embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    const startedAt = performance.now()
    const result = await this.#runPooling('embed', request, call, async (engine, call) => {
      const { loadMs: _, totalMs: __, ...result } = await engine.embed(request, call)
      return result
    })
    return { ...result, loadMs: 0, totalMs: performance.now() - startedAt }
  }

  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    return this.#runPooling('rerank', request, call, (engine, call) => engine.rerank(request, call))
  }

  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    return this.#run('tokenize', request, call, (engine) => engine.tokenize(request, call))
  }

  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    return this.#run('detokenize', request, call, (engine) => engine.detokenize(request, call))
  }

  tokenPieces(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]> {
    return this.#run('tokenPieces', request, call, (engine) => {
      if (!engine.tokenPieces)
        throw new LlmError('invalid_request', 'This engine does not report the text of each token.')
      return engine.tokenPieces(request, call)
    })
  }

  async load(model: string, load: LoadOptions, call: EngineCall): Promise<void> {
    await this.#run('load', { model, load }, call, (engine) => engine.load(model, load, call))
  }

  async unload(model: string): Promise<void> {
    const call = { signal: new AbortController().signal }
    await this.#run('unload', { model }, call, (engine) => engine.unload(model))
  }

  async deletePromptStates(tenant: string): Promise<number> {
    return (await this.#recorder?.deletePromptStates?.(tenant)) ?? 0
  }

  seesImages(request: GenerateRequest, call: EngineCall): boolean {
    return this.#recorder
      ? (this.#recorder.seesImages?.(request, call) ?? false)
      : this.#recordings.seesImages(request.model)
  }

  loaded(): readonly LoadedModel[] {
    const loaded = this.#recorder?.loaded() ?? []
    const names = loaded.map(({ name }) => name)
    return [...loaded, ...this.#recordings.loaded().filter(({ name }) => !names.includes(name))]
  }

  get health(): Engine['health'] {
    return this.#recorder?.health
  }

  async listModels(): Promise<readonly Model[]> {
    return (await this.#recorder?.listModels?.()) ?? []
  }

  findModel(name: string): ReturnType<NonNullable<Engine['findModel']>> {
    return this.#recorder ? this.#recorder.findModel?.(name) : this.#recordings.findModel(name)
  }

  async close(): Promise<void> {
    await this.#engine?.close()
  }

  unused(): readonly RecordedEngineCall[] {
    return this.#recordings.unused()
  }

  async *#recordEvents(
    recordedCall: RecordedEngineCall,
    request: GenerateRequest,
    call: EngineCall,
  ): AsyncGenerator<GenerateEvent> {
    const engine = this.#expectRecorder(recordedCall)
    const save = this.#recordings.begin(recordedCall)
    const events: object[] = []
    const saveAll = async (error?: LlmError): Promise<void> =>
      save(
        { events: events as RecordedOutcome['events'], ...(error && { error: toRecordedError(error) }) },
        await describeModel(engine, recordedCall, call),
      )
    try {
      for await (const event of engine.generate(request, call)) {
        if (event.type !== 'end') events.push(event)
        else {
          const { timings: _, ...end } = event
          events.push(end)
          // Before the event is read, since its reader may stop here.
          await saveAll()
        }
        yield event
      }
    } catch (error) {
      if (LlmError.is(error) && !call.signal.aborted) await saveAll(error)
      throw error
    }
  }

  async *#replayEvents(
    recordedCall: RecordedEngineCall,
    { events = [], error }: RecordedOutcome,
    signal: AbortSignal,
  ): AsyncGenerator<GenerateEvent> {
    const startedAt = performance.now()
    for (const event of events) {
      // Lets an abort between two events take effect, as with a model.
      await nextTurn()
      if (signal.aborted) return
      this.#recordings.markReplayed(recordedCall)
      const timings = { loadMs: 0, promptMs: 0, generateMs: performance.now() - startedAt }
      yield (event.type === 'end' ? { ...event, timings } : event) as GenerateEvent
    }
    if (error) throw toLlmError(error)
  }

  /** Runs a pooling call, and records how many tokens it evaluated before an error. */
  #runPooling<Result extends { readonly inputTokens: number }>(
    method: EngineMethod,
    request: RecordableRequest,
    call: EngineCall,
    run: (engine: Engine, call: EngineCall) => Promise<Result>,
  ): Promise<Result> {
    let inputTokens = 0
    const onInputTokens = (tokens: number): void => {
      inputTokens += tokens
      call.onInputTokens?.(tokens)
    }
    return this.#run(
      method,
      request,
      call,
      (engine) => run(engine, { ...call, onInputTokens }),
      () => inputTokens,
    )
  }

  async #run<Result>(
    method: EngineMethod,
    request: RecordableRequest,
    call: EngineCall,
    run: (engine: Engine) => Promise<Result>,
    countInputTokens = (): number => 0,
  ): Promise<Result> {
    const recordedCall = this.#toRecordedCall(method, request, call)
    const outcome = this.#recordings.take(recordedCall)
    if (outcome) return this.#replayResult(recordedCall, outcome, call)
    const engine = this.#expectRecorder(recordedCall)
    const save = this.#recordings.begin(recordedCall)
    const saveOutcome = async (outcome: RecordedOutcome): Promise<void> =>
      save(outcome, await describeModel(engine, recordedCall, call))
    try {
      const result = await run(engine)
      await saveOutcome({ result })
      return result
    } catch (error) {
      const inputTokens = countInputTokens()
      if (LlmError.is(error) && !call.signal.aborted)
        await saveOutcome({ ...(inputTokens > 0 && { inputTokens }), error: toRecordedError(error) })
      throw error
    }
  }

  async #replayResult<Result>(
    recordedCall: RecordedEngineCall,
    { result, inputTokens, error }: RecordedOutcome,
    { signal, onInputTokens }: EngineCall,
  ): Promise<Result> {
    await nextTurn()
    signal.throwIfAborted()
    const evaluated = inputTokens ?? (result as Partial<Ranking> | undefined)?.inputTokens
    if (evaluated !== undefined) onInputTokens?.(evaluated)
    if (error) throw toLlmError(error)
    this.#recordings.markReplayed(recordedCall)
    return result as Result
  }

  #toRecordedCall(
    method: EngineMethod,
    request: RecordableRequest,
    { requestedContextSize }: EngineCall,
  ): RecordedEngineCall {
    // This size belongs to the request, because the engine rejects a call that needs it.
    const size = requestedContextSize === undefined ? {} : { requestedContextSize }
    return { method, request: toJson({ ...this.#normalize(request), ...size }) }
  }

  /** The engine that records an unknown call. Throws an `LlmError` when replaying. */
  #expectRecorder(call: RecordedEngineCall): Engine {
    if (this.#recorder) return this.#recorder
    throw this.#recordings.describeUnknown(call)
  }
}

/** What a replay must know of the model, so that the dialects and the steps of the call do the same without it. */
async function describeModel(
  engine: Engine,
  { request }: RecordedEngineCall,
  call: EngineCall,
): Promise<RecordedModel> {
  const { model } = call
  const { input } = request as Partial<GenerateRequest>
  const name = model?.name ?? String(request.model)
  const contextSize = engine.loaded().find((loaded) => loaded.name === name)?.contextSize
  const details = model && (await engine.details?.(model).catch(() => undefined))
  return {
    name,
    ...(contextSize && { contextSize }),
    // A blind model gets no images.
    ...(input && imagesOf(input).length > 0 && { seesImages: true }),
    // Licenses are long, and change no answer.
    ...(model?.defaults && { defaults: { ...model.defaults, license: [] } }),
    ...(model?.config && { config: { ...model.config } }),
    ...(details && { details: { architecture: details.architecture, capabilities: details.capabilities } }),
  }
}

const toRecordedError = ({ code, message, details }: LlmError): NonNullable<RecordedOutcome['error']> => ({
  code,
  message,
  details: { ...details },
})

const toLlmError = ({ code, message, details }: NonNullable<RecordedOutcome['error']>): LlmError =>
  new LlmError(code as LlmErrorCode, message, details)
