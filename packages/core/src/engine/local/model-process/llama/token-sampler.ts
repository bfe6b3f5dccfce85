/**
 * Samples the tokens of one output. Separate samplers, the probes, read the logprobs before sampling steps
 * change them.
 */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { Logprobs, Sample, Sampler } from '../decoding/decoder.ts'
import { DryPenalties } from '../decoding/dry-penalties.ts'
import {
  type SamplerConfig,
  type SamplingParams,
  toProbeConfig,
  toSamplerConfig,
} from '../decoding/sampling.ts'
import { type Addon, type AddonSampler, type ProbeResult, stateOf } from './addon.ts'
import type { JsonAutoClose } from './json-auto-close.ts'

export class TokenSampler implements Sampler {
  targetLogprobs: readonly Logprobs[] | undefined
  readonly #addon: Addon
  readonly #params: SamplingParams
  readonly #prompt: readonly Token[]
  readonly #sampled: Token[] = []
  readonly #sampler: AddonSampler
  /** Grammar state. Advances with each sampled token. */
  #grammar: LlamaGrammarEvaluationState | undefined
  readonly #autoClose: JsonAutoClose | undefined
  readonly #dry: DryPenalties | undefined
  #dryBias: SamplingParams['bias'] = []
  /**
   * One probe reads the logprob of any token, the other one the most likely tokens. A single probe would sort
   * the whole vocabulary.
   */
  readonly #probes: readonly AddonSampler[]
  /** Finds the most likely token, even if the grammar excludes it. */
  readonly #greedyProbe: AddonSampler | undefined

  constructor(
    addon: Addon,
    params: SamplingParams,
    prompt: readonly Token[],
    grammar?: LlamaGrammarEvaluationState,
    autoClose?: JsonAutoClose,
  ) {
    this.#addon = addon
    this.#params = params
    this.#prompt = prompt
    this.#grammar = grammar
    this.#autoClose = autoClose
    const { logprobs, dry } = params
    this.#dry = dry && new DryPenalties(dry, addon.textOf)
    const tops = logprobs === undefined ? [] : logprobs === 0 ? [0] : [0, logprobs]
    this.#sampler = createSampler(addon, this.#config())
    this.#greedyProbe = autoClose && createSampler(addon, toProbeConfig(params, 0))
    this.#probes = tops.map((top) => createSampler(addon, toProbeConfig(params, top)))
  }

  /** Starts synchronously. Resolves with an `Error` instead of rejecting. */
  async sample(output: number): Promise<Sample | Error> {
    try {
      const token = await this.#sampleOrClose(output)
      if (token === -1) return new Error('no token is possible')
      return { token, logprobs: await this.#probeLogprobs(token, output) }
    } catch (cause) {
      return new Error('sampling failed', { cause })
    }
  }

  /**
   * Reads the logprobs of the targets row by row, since a probe takes one row at a time. Starts
   * synchronously. Resolves with an `Error` instead of rejecting.
   */
  async scoreTargets(targets: readonly Token[], outputs: Uint32Array): Promise<Error | undefined> {
    try {
      const all: Logprobs[] = []
      for (const [row, token] of targets.entries()) {
        const logprobs = await this.#probeLogprobs(token, outputs[row] as number)
        if (logprobs) all.push(logprobs)
      }
      this.targetLogprobs = all
      return undefined
    } catch (cause) {
      return new Error('the logprobs of the prompt are unknown', { cause })
    }
  }

  dispose(): void {
    for (const sampler of [this.#sampler, ...this.#probes]) sampler.dispose()
    this.#greedyProbe?.dispose()
  }

  #config(): SamplerConfig {
    return {
      ...toSamplerConfig(this.#params, this.#prompt, this.#sampled, this.#dryBias),
      ...(this.#grammar && { grammarEvaluationState: stateOf(this.#grammar) }),
    }
  }

  /** Samples a token. A closing token may replace it when the model wants to end inside JSON. */
  async #sampleOrClose(output: number): Promise<Token | -1> {
    const { context } = this.#addon
    const until = this.#params.ban?.until ?? 0
    const probe = this.#sampled.length < until ? undefined : this.#greedyProbe
    // Both samples run at once. Awaiting one after the other would leave the model idle.
    const [likeliest, sampled] = await awaitAll([
      probe && context.sampleToken(output, probe),
      context.sampleToken(output, this.#sampler),
    ])
    const isKnown = likeliest !== undefined && likeliest !== -1
    const token = (isKnown ? this.#autoClose?.chooseCloser(likeliest) : undefined) ?? sampled
    if (token === -1) return -1
    this.#sampled.push(token)
    this.#autoClose?.accept(token)
    if (token !== sampled) this.#grammar = this.#autoClose?.cloneState()
    const isPenaltyNew = this.#updateDryBias(token)
    if (token !== sampled || this.#sampled.length === until || isPenaltyNew)
      this.#sampler.applyConfig(this.#config())
    return token
  }

  /** Returns `false` if the penalties are the same as before. */
  #updateDryBias(token: Token): boolean {
    if (!this.#dry) return false
    this.#dry.accept(token)
    const [before, now] = [this.#dryBias, this.#dry.list()]
    this.#dryBias = now
    return (
      before.length !== now.length ||
      before.some(([token, bias], index) => token !== now[index]?.[0] || bias !== now[index]?.[1])
    )
  }

  async #probeLogprobs(token: Token, output: number): Promise<Logprobs | undefined> {
    const [all, likeliest] = this.#probes
    if (!all) return undefined
    const { context } = this.#addon
    const [weighed, ranked] = await awaitAll([
      context.sampleToken(output, all, false, false, [[token], false, false, true, 0], true),
      likeliest &&
        context.sampleToken(
          output,
          likeliest,
          false,
          false,
          [[], false, false, false, this.#params.logprobs ?? 0],
          false,
        ),
    ])
    return toLogprobs(token, weighed, ranked)
  }
}

/**
 * Like `Promise.all`, but waits for all before it rejects, since the caller frees the samplers after a
 * rejection.
 */
async function awaitAll<const All extends readonly unknown[]>(all: All) {
  await Promise.allSettled(all)
  return Promise.all(all)
}

function createSampler({ AddonSampler, model }: Addon, config: SamplerConfig): AddonSampler {
  const sampler = new AddonSampler(model)
  sampler.applyConfig(config)
  return sampler
}

/** Throws if the logprob of the token is not finite. */
function toLogprobs(
  token: Token,
  [, , , weighed, totalWeight = 0]: ProbeResult,
  ranked: ProbeResult | undefined,
): Logprobs {
  const logits = toPairs(weighed)
  const base = Math.max(...logits.map(([, logit]) => logit)) + Math.log(totalWeight)
  const toLogprob = ([id, logit]: readonly [Token, number]) => [id, logit - base] as const
  const logprob = logits.map(toLogprob).find(([id]) => id === token)?.[1] ?? Number.NaN
  if (!Number.isFinite(logprob)) throw new Error('a logprob is not finite')
  const top = toPairs(ranked?.[3] ?? []).map(toLogprob)
  return { logprob, top: top.filter(([, logprob]) => Number.isFinite(logprob)) }
}

const toPairs = (flat: readonly number[]): (readonly [Token, number])[] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as Token, flat[2 * at + 1] as number])
