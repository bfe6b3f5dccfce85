/**
 * Several engines behind one `Engine`: the first engine, which has the models of the store, and named engines, whose
 * models are `ENGINE/name`. Each engine gets its models by its own names for them.
 */
import { LlmError, modelNotFound } from '../errors.ts'
import type { ModelDetails } from '../models/gguf/model-details.ts'
import type { Model } from '../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from './engine.ts'
import type { EngineHealth } from './engine-health.ts'
import type { GenerateEvent } from './events.ts'
import { NamedEngine } from './named-engine.ts'
import type { ReplicaEvent, ReplicaStatus } from './replicas.ts'
import type { GenerateRequest, LoadOptions } from './request.ts'
import { settleAll } from './settle-all.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from './tokens.ts'

/** A model of a named engine. */
interface EngineModel {
  readonly named: NamedEngine
  /** The engine's own name for the model. */
  readonly name: string
}

type Run<Request, Result> = (engine: Engine, request: Request, call: EngineCall) => Promise<Result>

export class EngineSet implements Engine {
  readonly #first: Engine
  readonly #named: readonly NamedEngine[]
  readonly health: EngineHealth

  /** @param engines with `findModel`, by name. Names that differ only in case are the same */
  constructor(first: Engine, engines: Readonly<Record<string, Engine>>) {
    this.#first = first
    this.#named = Object.entries(engines).map(([name, engine]) => new NamedEngine(name, engine))
    // A problem of a named engine is one of its models, and not of the app.
    this.health = {
      problem: async () => first.health?.problem(),
      problemOf: async (model, signal) => {
        const { engine, model: own } = this.#ownModel(model)
        return engine.health?.problemOf(own, signal)
      },
      probe: async (model, signal) => {
        const { engine, model: own } = this.#ownModel(model)
        await engine.health?.probe(own, signal)
      },
    }
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent> {
    const target = this.#targetOf(request.model, call)
    return target
      ? target.named.generate({ ...request, model: target.name }, call)
      : this.#first.generate(request, call)
  }

  countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run(request, call, (engine, ...args) => engine.countTokens(...args))
  }

  boundTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run(request, call, (engine, ...args) =>
      (engine.boundTokens ?? engine.countTokens).apply(engine, args),
    )
  }

  countCachedTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run(
      request,
      call,
      async (engine, ...args) => (await engine.countCachedTokens?.(...args)) ?? 0,
    )
  }

  seesImages(request: GenerateRequest, call: EngineCall): boolean {
    const target = this.#targetOf(request.model, call)
    if (!target) return this.#first.seesImages?.(request, call) ?? false
    const { named, name } = target
    return named.engine.seesImages?.({ ...request, model: name }, named.toOwnCall(call, name)) ?? false
  }

  render(request: GenerateRequest, call: EngineCall): Promise<string> {
    return this.#run(request, call, (engine, ...args) => engine.render(...args))
  }

  embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    return this.#run(request, call, (engine, ...args) => engine.embed(...args))
  }

  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    return this.#run(request, call, (engine, ...args) => engine.rerank(...args))
  }

  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    return this.#run(request, call, (engine, ...args) => engine.tokenize(...args))
  }

  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    return this.#run(request, call, (engine, ...args) => engine.detokenize(...args))
  }

  tokenPieces(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]> {
    return this.#run(request, call, async (engine, ...args) => {
      if (engine.tokenPieces) return engine.tokenPieces(...args)
      throw new LlmError('invalid_request', 'This engine does not report the text of each token.', {
        param: 'with_pieces',
        issue: 'unsupported',
      })
    })
  }

  load(model: string, options: LoadOptions, call: EngineCall): Promise<void> {
    return this.#run({ model }, call, (engine, { model }, call) => engine.load(model, options, call))
  }

  async unload(model: string): Promise<void> {
    const target = this.#split(model)
    if (!target) return this.#first.unload(model)
    // The engine may know the model by another spelling, such as with the tag `latest`.
    const found = await target.named.find(target.name)
    await target.named.engine.unload(found ? target.named.ownNameOf(found.name) : target.name)
  }

  async deletePromptStates(tenant: string): Promise<number> {
    const counts = await settleAll(
      this.#engines.map(async (engine) => (await engine.deletePromptStates?.(tenant)) ?? 0),
    )
    return counts.reduce((sum, count) => sum + count, 0)
  }

  loaded(): readonly LoadedModel[] {
    return [...this.#first.loaded(), ...this.#named.flatMap((named) => named.loaded())]
  }

  replicas(): readonly ReplicaStatus[] {
    return [...(this.#first.replicas?.() ?? []), ...this.#named.flatMap((named) => named.replicas())]
  }

  /** Rejects with `not_found` for a name that begins with the name of an engine which does not know the model. */
  async findModel(name: string): Promise<Model | undefined> {
    const target = this.#split(name)
    if (!target) return this.#first.findModel?.(name)
    const model = await target.named.find(target.name)
    if (model) return model
    throw modelNotFound(name)
  }

  /** Finds a model by its name without the name of its engine. The first engine that knows the name has the model. */
  async findByBareName(name: string): Promise<Model | undefined> {
    if (this.#split(name)) return undefined
    // An engine that cannot be reached must neither hide the models of the others nor delay each of them.
    const found = await Promise.all(this.#named.map((named) => named.find(name).catch(() => undefined)))
    return found.find((model) => model !== undefined)
  }

  async listModels(): Promise<readonly Model[]> {
    const lists = await Promise.all([
      this.#first.listModels?.() ?? [],
      ...this.#named.map((named) => named.list()),
    ])
    return lists.flat()
  }

  /** Returns the name of the engine with which the name of a model begins. */
  engineOf(name: string): string | undefined {
    return this.#split(name)?.named.name
  }

  async details(model: Model): Promise<ModelDetails> {
    const { engine, model: own } = this.#ownModel(model)
    const details = model.details ?? (await engine.details?.(own))
    if (details) return details
    throw modelNotFound(model.name)
  }

  onReplicaEvent(listener: (event: ReplicaEvent) => void): () => void {
    const ends = [
      this.#first.onReplicaEvent?.(listener),
      ...this.#named.map(({ name, engine }) =>
        engine.onReplicaEvent?.((event) => listener({ ...event, engine: name })),
      ),
    ]
    return () => {
      for (const end of ends) end?.()
    }
  }

  async close(): Promise<void> {
    await settleAll(this.#engines.map(async (engine) => engine.close()))
  }

  get #engines(): readonly Engine[] {
    return [this.#first, ...this.#named.map(({ engine }) => engine)]
  }

  async #run<Request extends { readonly model: string }, Result>(
    request: Request,
    call: EngineCall,
    run: Run<Request, Result>,
  ): Promise<Result> {
    const target = this.#targetOf(request.model, call)
    if (!target) return run(this.#first, request, call)
    const { named, name } = target
    try {
      return await run(named.engine, { ...request, model: name }, named.toOwnCall(call, name))
    } catch (cause) {
      throw named.qualifyError(cause, name)
    }
  }

  /**
   * Returns the model of a request. Undefined if it is one of the first engine. Throws `not_found` if nothing has found
   * the model of a named engine.
   */
  #targetOf(requested: string, { model, alias }: EngineCall): EngineModel | undefined {
    const target = this.#split(model?.name ?? requested)
    if (target && !model) throw modelNotFound(requested, alias)
    return target
  }

  #ownModel(model: Model): { readonly engine: Engine; readonly model: Model } {
    const target = this.#split(model.name)
    return target
      ? { engine: target.named.engine, model: target.named.toOwnModel(model, target.name) }
      : { engine: this.#first, model }
  }

  #split(name: string): EngineModel | undefined {
    const slash = name.indexOf('/')
    if (slash <= 0) return undefined
    const prefix = name.slice(0, slash).toLowerCase()
    const named = this.#named.find((one) => one.name.toLowerCase() === prefix)
    return named && { named, name: name.slice(slash + 1) }
  }
}
