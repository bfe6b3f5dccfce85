/** One engine of several, whose models the app calls `ENGINE/name`. */
import { LlmError } from '../errors.ts'
import type { Model } from '../models/model.ts'
import type { Engine, EngineCall, LoadedModel } from './engine.ts'
import type { GenerateEvent } from './events.ts'
import type { ReplicaStatus } from './replicas.ts'
import type { GenerateRequest } from './request.ts'

type EventResult = IteratorResult<GenerateEvent, undefined>

export class NamedEngine {
  readonly name: string
  readonly engine: Engine

  constructor(name: string, engine: Engine) {
    this.name = name
    this.engine = engine
  }

  /** @param name the engine's own name for the model, with or without the tag `latest` */
  async find(name: string): Promise<Model | undefined> {
    for (const spelling of spellingsOf(name)) {
      const model = await this.engine.findModel?.(spelling)
      if (model) return this.#qualify(model)
    }
    return undefined
  }

  /** Never rejects, because one engine must not empty the list of all models. */
  async list(): Promise<readonly Model[]> {
    const models = await Promise.resolve(this.engine.listModels?.()).catch(() => [])
    return (models ?? []).map((model) => this.#qualify(model))
  }

  loaded(): readonly LoadedModel[] {
    return this.engine.loaded().map((model) => ({ ...model, name: this.#fullNameOf(model.name) }))
  }

  replicas(): readonly ReplicaStatus[] {
    return (this.engine.replicas?.() ?? []).map((replica) => ({ ...replica, engine: this.name }))
  }

  /** Generates, and gives the model its full name in the event `start` and in errors. */
  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent> {
    const { model } = request
    const events = this.engine.generate(request, this.toOwnCall(call, model))
    const qualify = (result: EventResult): EventResult =>
      !result.done && result.value.type === 'start'
        ? { done: false, value: { ...result.value, model: this.#fullNameOf(model) } }
        : result
    const fail = (cause: unknown): never => {
      throw this.qualifyError(cause, model)
    }
    return {
      // Not a generator, whose `return` would wait for the event that the engine has not generated yet.
      [Symbol.asyncIterator]: () => {
        const iterator: AsyncIterator<GenerateEvent, undefined> = events[Symbol.asyncIterator]()
        return {
          next: () => iterator.next().then(qualify, fail),
          return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
        }
      },
    }
  }

  /** @param name the engine's own name for the model */
  toOwnCall(call: EngineCall, name: string): EngineCall {
    return call.model ? { ...call, model: this.toOwnModel(call.model, name) } : call
  }

  toOwnModel({ engine: _, ...model }: Model, name: string): Model {
    return { ...model, name }
  }

  /** The engine's own name for a model with this full name. */
  ownNameOf(fullName: string): string {
    return fullName.slice(this.name.length + 1)
  }

  /** Replaces the engine's own name for a model by the full one. */
  qualifyError(cause: unknown, name: string): unknown {
    if (!LlmError.is(cause)) return cause
    const { code, message, details } = cause
    const fullName = this.#fullNameOf(name)
    const isNamed = details.model === name
    const qualified = message.replaceAll(`"${name}"`, () => `"${fullName}"`)
    if (!isNamed && qualified === message) return cause
    return new LlmError(code, qualified, { ...details, ...(isNamed && { model: fullName }) }, { cause })
  }

  #qualify(model: Model): Model {
    return { ...model, name: this.#fullNameOf(model.name), engine: this.name }
  }

  #fullNameOf(name: string): string {
    return `${this.name}/${name}`
  }
}

/** As everywhere, a name without a tag means the tag `latest`. */
const spellingsOf = (name: string): readonly string[] => {
  if (name.endsWith(':latest')) return [name, name.slice(0, -':latest'.length)]
  return name.includes(':') ? [name] : [name, `${name}:latest`]
}
