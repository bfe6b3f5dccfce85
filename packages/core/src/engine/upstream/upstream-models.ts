/** The models of an upstream server, as the app sees them. */
import { createHash } from 'node:crypto'
import { LlmError, modelNotFound } from '../../errors.ts'
import type { Capability, ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { ResolvedUpstreamOptions } from './options.ts'
import type { ListedModel } from './upstream-api.ts'

/** How long a list of the server is used before it is read again, in ms. */
const maxAgeMs = 60_000
/** Time limit for the list, in ms. A slow server must not hold up the list of all models. */
const listTimeoutMs = 5_000
const latest = ':latest'
const defaultCapabilities: readonly Capability[] = ['completion', 'tools']

export class UpstreamModels {
  readonly #options: Pick<ResolvedUpstreamOptions, 'identity' | 'models'>
  readonly #readList: (signal: AbortSignal) => Promise<readonly ListedModel[]>
  #listed: ReadonlyMap<string, Model> | undefined
  /** Models of which the option or the server says what they can do. */
  readonly #described = new WeakSet<Model>()
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(
    options: Pick<ResolvedUpstreamOptions, 'identity' | 'models'>,
    readList: (signal: AbortSignal) => Promise<readonly ListedModel[]>,
  ) {
    this.#options = options
    this.#readList = readList
  }

  /** Does not reject: while the server is away, returns the models that are known. */
  async list(): Promise<readonly Model[]> {
    await this.#refresh().catch(() => {})
    return [...this.#known().values()]
  }

  /** Rejects with an `LlmError` if the server is away, and has never said whether it has the model. */
  async find(name: string): Promise<Model | undefined> {
    const known = this.known(name)
    // The next call gets what the server has changed, and this one need not wait. Does not reject while a list is known.
    if (known && this.#listed) void this.#refresh()
    if (known) return known
    await this.#refresh()
    return this.known(name)
  }

  /** Returns a model if it is known without a request. Throws `not_found` if the app names its models, but not this one. */
  allowed(name: string): Model | undefined {
    const known = this.known(name)
    if (!known && this.#options.models) throw modelNotFound(name)
    return known
  }

  /** Like `find`, but rejects with `not_found` if the server lists other models, and resolves if it lists none. */
  async expect(name: string): Promise<Model | undefined> {
    const known = this.allowed(name)
    if (known || (await this.list()).length === 0) return known
    const found = this.known(name)
    if (!found) throw modelNotFound(name)
    return found
  }

  contextSizeOf(name: string): number {
    return this.known(name)?.details?.contextSize ?? 0
  }

  /** Undefined if neither the option nor the server says what the model can do. */
  capabilitiesOf(name: string): readonly Capability[] | undefined {
    const model = this.known(name)
    return model && this.#described.has(model) ? model.details?.capabilities : undefined
  }

  /** Returns a model if it is known without a request. A name without a tag means the tag `latest`. */
  known(name: string): Model | undefined {
    const known = this.#known()
    return known.get(name) ?? known.get(name.endsWith(latest) ? name.slice(0, -latest.length) : name + latest)
  }

  /** The models of the option if there is one, with what the server says about them. */
  #known(): ReadonlyMap<string, Model> {
    const { models } = this.#options
    if (!models) return this.#listed ?? new Map()
    return new Map(
      Object.keys(models).map((name) => [name, this.#listed?.get(name) ?? this.#toModel({ name })]),
    )
  }

  /** One request for all who wait. */
  #refresh(): Promise<void> {
    if (performance.now() - this.#readAt < maxAgeMs) return Promise.resolve()
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const signal = AbortSignal.timeout(listTimeoutMs)
    try {
      const models = await this.#readList(signal)
      this.#listed = new Map(models.map((model) => [model.name, this.#toModel(model)]))
      this.#readAt = performance.now()
    } catch (cause) {
      if (this.#listed) return
      throw LlmError.is(cause)
        ? cause
        : new LlmError(
            'upstream',
            'The upstream server does not answer.',
            { upstreamFailure: 'stalled' },
            { cause },
          )
    }
  }

  #toModel(listed: ListedModel): Model {
    const { name, modifiedAt = new Date(0), sizeBytes = 0, digest, defaults, config } = listed
    const model: Model = {
      ...{ name, path: '', sizeBytes, modifiedAt, isBuiltIn: false },
      digest: digest ?? createHash('sha256').update(`${this.#options.identity} ${name}`).digest('hex'),
      details: this.#toDetails(listed),
      ...(defaults && { defaults }),
      ...(config && { config }),
    }
    if (this.#options.models?.[name]?.capabilities ?? listed.capabilities) this.#described.add(model)
    return model
  }

  #toDetails(listed: ListedModel): ModelDetails {
    const { name, architecture = 'unknown', parameterSize = '', quantization = 'unknown', details } = listed
    const own = this.#options.models?.[name]
    const contextSize = own?.contextSize ?? listed.contextSize
    return {
      ...{ metadata: {}, tensors: [], architecture, parameterSize, quantization, parameterCount: 0 },
      ...details,
      ...(contextSize !== undefined && { contextSize }),
      capabilities: own?.capabilities ?? listed.capabilities ?? defaultCapabilities,
    }
  }
}
