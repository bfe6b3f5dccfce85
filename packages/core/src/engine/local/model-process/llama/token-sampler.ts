/** Draws the tokens of one answer. What it draws from is not what the model says: probes look at that. */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { Logprobs, Sampler } from '../decoding/decoder.ts'
import {
  type SamplerConfig,
  type SamplingParams,
  toProbeConfig,
  toSamplerConfig,
} from '../decoding/sampling.ts'
import { type Addon, type AddonSampler, type ProbeResult, stateOf } from './addon.ts'
import type { JsonAutoClose } from './json-auto-close.ts'

export class TokenSampler implements Sampler {
  lastLogprobs: Logprobs | undefined
  targetLogprobs: readonly Logprobs[] | undefined
  readonly #addon: Addon
  readonly #params: SamplingParams
  readonly #prompt: readonly Token[]
  readonly #sampled: Token[] = []
  readonly #sampler: AddonSampler
  /** Goes on with each token that the sampler draws. */
  #grammar: LlamaGrammarEvaluationState | undefined
  readonly #autoClose: JsonAutoClose | undefined
  /** Of all tokens, and of the likeliest. One that does both would sort the whole vocabulary. */
  readonly #probes: readonly AddonSampler[]
  /** Which of all tokens is it. */
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
    const { logprobs } = params
    const tops = logprobs === undefined ? [] : logprobs === 0 ? [0] : [0, logprobs]
    this.#sampler = createSampler(addon, this.#config())
    this.#greedyProbe = autoClose && createSampler(addon, toProbeConfig(params, 0))
    this.#probes = tops.map((top) => createSampler(addon, toProbeConfig(params, top)))
  }

  /** Begins at once, and never rejects. */
  async sample(output: number): Promise<Token | Error> {
    try {
      const token = await this.#sampleOrClose(output)
      if (token === -1) return new Error('no token is possible')
      this.lastLogprobs = await this.#probeLogprobs(token, output)
      return token
    } catch (cause) {
      return new Error('drawing failed', { cause })
    }
  }

  /** One row after the other: a probe looks at one at a time. Begins at once, and never rejects. */
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
      return new Error('the odds of a prompt are not known', { cause })
    }
  }

  dispose(): void {
    for (const sampler of [this.#sampler, ...this.#probes]) sampler.dispose()
    this.#greedyProbe?.dispose()
  }

  #config(): SamplerConfig {
    return {
      ...toSamplerConfig(this.#params, this.#prompt, this.#sampled),
      ...(this.#grammar && { grammarEvaluationState: stateOf(this.#grammar) }),
    }
  }

  /** What is drawn, or what closes something instead. */
  async #sampleOrClose(output: number): Promise<Token | -1> {
    const { context } = this.#addon
    const until = this.#params.ban?.until ?? 0
    const probe = this.#sampled.length < until ? undefined : this.#greedyProbe
    // Both at once: between one and the other the model would rest.
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
    if (token !== sampled || this.#sampled.length === until) this.#sampler.applyConfig(this.#config())
    return token
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

/** Also those beside one that failed: their samplers are freed then. */
async function awaitAll<const All extends readonly unknown[]>(all: All) {
  await Promise.allSettled(all)
  return Promise.all(all)
}

function createSampler({ AddonSampler, model }: Addon, config: SamplerConfig): AddonSampler {
  const sampler = new AddonSampler(model)
  sampler.applyConfig(config)
  return sampler
}

/** Throws where the model said something that is no number. */
function toLogprobs(
  token: Token,
  [, , , weighed, totalWeight = 0]: ProbeResult,
  ranked: ProbeResult | undefined,
): Logprobs {
  const logits = toPairs(weighed)
  const base = Math.max(...logits.map(([, logit]) => logit)) + Math.log(totalWeight)
  const toLogprob = ([id, logit]: readonly [Token, number]) => [id, logit - base] as const
  const logprob = logits.map(toLogprob).find(([id]) => id === token)?.[1] ?? Number.NaN
  if (!Number.isFinite(logprob)) throw new Error('the odds are no numbers')
  const top = toPairs(ranked?.[3] ?? []).map(toLogprob)
  return { logprob, top: top.filter(([, logprob]) => Number.isFinite(logprob)) }
}

const toPairs = (flat: readonly number[]): (readonly [Token, number])[] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as Token, flat[2 * at + 1] as number])
