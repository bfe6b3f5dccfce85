/** An engine whose models run on several servers. */
import { LlmError, modelNotFound } from '../../errors.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { EngineHealth } from '../engine-health.ts'
import type { GenerateEvent } from '../events.ts'
import type { ReplicaEvent, ReplicaStatus } from '../replicas.ts'
import type { GenerateRequest, LoadOptions } from '../request.ts'
import { settleAll } from '../settle-all.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../tokens.ts'
import { FleetAnswer } from './fleet-answer.ts'
import { FleetMembers } from './fleet-members.ts'
import { listModels, replicasWith } from './fleet-models.ts'
import { FleetRouter } from './fleet-router.ts'
import type { ResolvedFleetOptions } from './options.ts'
import { RetryBudget } from './retry-budget.ts'
import { runOnReplica } from './run-on-replica.ts'

export class FleetEngine implements Engine {
  readonly #options: ResolvedFleetOptions
  readonly #members: FleetMembers
  readonly #router: FleetRouter
  readonly #budget: RetryBudget
  readonly #listeners = new Set<(event: ReplicaEvent) => void>()
  readonly health: EngineHealth

  constructor(options: ResolvedFleetOptions) {
    this.#options = options
    this.#members = new FleetMembers(options, (event) => {
      for (const listener of this.#listeners) listener(event)
    })
    this.#router = new FleetRouter(options, this.#members)
    this.#budget = new RetryBudget(options.retryBudget)
    this.health = {
      problem: () => this.#problem(undefined),
      problemOf: ({ name }) => this.#problem(name),
      probe: async ({ name }) => {
        const problem = await this.#problem(name)
        if (problem) throw new LlmError('upstream', problem)
      },
    }
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent> {
    const { maxRetries, hedgeAfterMs } = this.#options
    const settings = { router: this.#router, budget: this.#budget, maxRetries, hedgeAfterMs }
    return { [Symbol.asyncIterator]: () => new FleetAnswer(request, call, settings) }
  }

  countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run(request.model, call, (engine, call) => engine.countTokens(request, call))
  }

  boundTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    return this.#run(request.model, call, (engine, call) => engine.boundTokens(request, call))
  }

  /** Replicas with the same model see the same. */
  seesImages(request: GenerateRequest): boolean {
    const { active } = this.#members
    const having = active.filter(({ engine }) => engine.knownModel(request.model))
    return having.length === 0 || having.some(({ engine }) => engine.seesImages(request))
  }

  embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    return this.#run(request.model, call, (engine, call) => engine.embed(request, call), request.inputs)
  }

  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    return this.#run(request.model, call, (engine, call) => engine.rerank(request, call), request.documents)
  }

  render(request: GenerateRequest, call: EngineCall): Promise<string> {
    return this.#run(request.model, call, (engine, call) => engine.render(request, call))
  }

  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    return this.#run(request.model, call, (engine, call) => engine.tokenize(request, call))
  }

  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    return this.#run(request.model, call, (engine, call) => engine.detokenize(request, call))
  }

  tokenPieces(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]> {
    return this.#run(request.model, call, (engine, call) => engine.tokenPieces(request, call))
  }

  /** Loads the model on one replica. The others load it when they get a call. */
  load(model: string, options: LoadOptions, call: EngineCall): Promise<void> {
    return this.#run(model, call, (engine, call) => engine.load(model, options, call))
  }

  /** Unloads the model on all replicas that have it. */
  async unload(model: string): Promise<void> {
    await this.#members.start()
    const having = await replicasWith(model, this.#members.all)
    if (having.length === 0) throw modelNotFound(model)
    await settleAll(having.map(({ engine }) => engine.unload(model)))
  }

  /** Rejects if a replica is away, after the others have deleted their states. */
  async deletePromptStates(tenant: string): Promise<number> {
    await this.#members.start()
    const counts = await settleAll(this.#members.all.map(({ engine }) => engine.deletePromptStates(tenant)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  loaded(): readonly LoadedModel[] {
    const models = this.#members.active.flatMap(({ engine }) => engine.loaded())
    return [...new Map(models.map((model) => [model.name, model])).values()]
  }

  async findModel(name: string): Promise<Model | undefined> {
    await this.#members.start()
    const [first] = await replicasWith(name, this.#members.active)
    return first?.engine.knownModel(name)
  }

  async listModels(): Promise<readonly Model[]> {
    await this.#members.start().catch(() => {})
    return listModels(this.#members.active)
  }

  async details(model: Model): Promise<ModelDetails> {
    const details = model.details ?? (await this.findModel(model.name))?.details
    if (!details) throw modelNotFound(model.name)
    return details
  }

  replicas(): readonly ReplicaStatus[] {
    return this.#members.all.map(({ status }) => status)
  }

  onReplicaEvent(listener: (event: ReplicaEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  drain(url: string | URL): Promise<void> {
    return this.#members.drain(this.#keyOf(url))
  }

  resume(url: string | URL): void {
    this.#members.resume(this.#keyOf(url))
  }

  close(): Promise<void> {
    return this.#members.close()
  }

  /** @param texts those that the server evaluates */
  #run<Result>(
    model: string,
    call: EngineCall,
    work: Parameters<typeof runOnReplica<Result>>[2],
    texts: readonly (string | readonly number[])[] = [],
  ): Promise<Result> {
    const tokens = Math.ceil(texts.reduce((sum, { length }) => sum + length, 0) / 4)
    const routed = { model, alias: call.alias, prompt: undefined, tokens }
    const settings = { router: this.#router, budget: this.#budget, maxRetries: this.#options.maxRetries }
    return runOnReplica(routed, call, work, settings)
  }

  async #problem(model: string | undefined): Promise<string | undefined> {
    try {
      await this.#members.start()
      const { active } = this.#members
      const having = model === undefined ? active : await replicasWith(model, active)
      if (having.some(({ state }) => state !== 'ejected')) return undefined
      return having.length > 0
        ? 'All replicas have failed.'
        : `This fleet has no replica${model === undefined ? '' : ' with this model'}.`
    } catch (cause) {
      return (cause as Error).message
    }
  }

  #keyOf(url: string | URL): string {
    return this.#options.toUpstream(url).baseUrl.href
  }
}
