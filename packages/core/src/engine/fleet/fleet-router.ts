/** Chooses the replica of each attempt of a call. */
import { LlmError, modelNotFound } from '../../errors.ts'
import { raceAbort } from '../../util/abort.ts'
import type { EngineCall } from '../engine.ts'
import type { GenerateRequest } from '../request.ts'
import { chooseReplica, costOf, type RoutedPrompt } from './choose-replica.ts'
import type { FleetMembers } from './fleet-members.ts'
import { replicasWith } from './fleet-models.ts'
import type { ResolvedFleetOptions } from './options.ts'
import { hashPrompt } from './prefix-blocks.ts'
import { PrefixMemory } from './prefix-memory.ts'
import type { CallLease, Replica } from './replica.ts'

/** Tokens of an answer that count as load: more would make a generous limit look like work. */
const maxOutputTokens = 1_024
const defaultOutputTokens = 256

/** A call for which a replica is chosen. */
export interface RoutedCall {
  readonly model: string
  readonly alias: string | undefined
  /** Undefined for calls that no cache helps. */
  readonly prompt: RoutedPrompt | undefined
  /** Tokens that the call costs without a prompt, as an estimate. */
  readonly tokens: number
}

export class FleetRouter {
  readonly #options: Pick<ResolvedFleetOptions, 'balance' | 'bound'>
  readonly #members: FleetMembers
  readonly #memory = new PrefixMemory()
  #turn = 0

  constructor(options: Pick<ResolvedFleetOptions, 'balance' | 'bound'>, members: FleetMembers) {
    this.#options = options
    this.#members = members
  }

  routeGeneration(request: GenerateRequest, { tenant, alias }: EngineCall): RoutedCall {
    const prefix = hashPrompt(request, tenant)
    const { maxTokens, defaultMaxTokens = defaultOutputTokens } = request
    const outputTokens = Math.min(maxTokens ?? defaultMaxTokens, maxOutputTokens)
    const prompt = { ...prefix, ...this.#memory.match(prefix), outputTokens }
    return { ...{ model: request.model, alias, prompt }, tokens: 0 }
  }

  /**
   * Begins an attempt at the best replica. Undefined if each replica with the model was tried. Rejects with an `LlmError` if
   * no replica has the model, and with the reason of the signal if it aborts.
   */
  async begin(
    call: RoutedCall,
    tried: ReadonlySet<Replica>,
    signal: AbortSignal,
  ): Promise<{ readonly replica: Replica; readonly lease: CallLease } | undefined> {
    const having = await raceAbort(this.#replicasWith(call), signal)
    // Some may have left while the lists of models were read.
    const candidates = preferred(having.filter((replica) => !replica.isDraining && !tried.has(replica)))
    if (candidates.length === 0) return undefined
    const replica = chooseReplica(candidates, call.prompt, { ...this.#options, turn: this.#turn++ })
    const { prompt } = call
    if (!prompt) return { replica, lease: replica.begin({ prompt: call.tokens, output: 0 }) }
    const { outputTokens: output } = prompt
    const lease = replica.begin({ prompt: costOf(prompt, replica) - output, output })
    this.#memory.add(prompt, replica.cacheId)
    return { replica, lease }
  }

  async #replicasWith({ model, alias }: RoutedCall): Promise<readonly Replica[]> {
    await this.#members.start()
    const { active } = this.#members
    if (active.length === 0)
      throw new LlmError('upstream', 'This fleet has no replicas.', { upstreamFailure: 'unreachable' })
    const having = await replicasWith(model, active)
    if (having.length === 0) throw modelNotFound(model, alias)
    return having
  }
}

/** Leaves out the replicas that are in a worse state than others. Of ejected ones, the one that may return first stays. */
function preferred(replicas: readonly Replica[]): readonly Replica[] {
  const healthy = replicas.filter(({ state }) => state === 'ready' || state === 'starting')
  if (healthy.length > 0) return healthy
  const overloaded = replicas.filter(({ state }) => state === 'overloaded')
  if (overloaded.length > 0) return overloaded
  const untilOf = ({ health }: Replica): number => health.ejectedUntil ?? 0
  return [...replicas].sort((a, b) => untilOf(a) - untilOf(b)).slice(0, 1)
}
