/** Draws the tokens of one answer. What it draws from is not what the model says: probes look at that. */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { Odds, Sampler } from '../decoding/decoder.ts'
import { type Draw, type SamplerConfig, toProbeConfig, toSamplerConfig } from '../decoding/sampling.ts'
import { type Addon, type AddonSampler, type Probed, stateOf } from './addon.ts'
import type { Closing } from './json-auto-close.ts'

export class Drawer implements Sampler {
  odds: Odds | undefined
  followerOdds: readonly Odds[] | undefined
  readonly #addon: Addon
  readonly #draw: Draw
  readonly #prompt: readonly Token[]
  readonly #drawn: Token[] = []
  readonly #sampler: AddonSampler
  /** Goes on with each token that the sampler draws. */
  #grammar: LlamaGrammarEvaluationState | undefined
  readonly #closing: Closing | undefined
  /** Of all tokens, and of the likeliest. One that does both would sort the whole vocabulary. */
  readonly #probes: readonly AddonSampler[]
  /** Which of all tokens is it. */
  readonly #likeliest: AddonSampler | undefined

  constructor(
    addon: Addon,
    draw: Draw,
    prompt: readonly Token[],
    grammar?: LlamaGrammarEvaluationState,
    closing?: Closing,
  ) {
    this.#addon = addon
    this.#draw = draw
    this.#prompt = prompt
    this.#grammar = grammar
    this.#closing = closing
    const { logprobs } = draw
    const tops = logprobs === undefined ? [] : logprobs === 0 ? [0] : [0, logprobs]
    this.#sampler = samplerOf(addon, this.#config())
    this.#likeliest = closing && samplerOf(addon, toProbeConfig(draw, 0))
    this.#probes = tops.map((top) => samplerOf(addon, toProbeConfig(draw, top)))
  }

  /** Begins at once, and never rejects. */
  async next(output: number): Promise<Token | Error> {
    try {
      const token = await this.#say(output)
      if (token === -1) return new Error('no token is possible')
      this.odds = await this.#oddsOf(token, output)
      return token
    } catch (cause) {
      return new Error('drawing failed', { cause })
    }
  }

  /** One row after the other: a probe looks at one at a time. Begins at once, and never rejects. */
  async weigh(followers: readonly Token[], outputs: Uint32Array): Promise<Error | undefined> {
    try {
      const all: Odds[] = []
      for (const [row, token] of followers.entries()) {
        const odds = await this.#oddsOf(token, outputs[row] as number)
        if (odds) all.push(odds)
      }
      this.followerOdds = all
      return undefined
    } catch (cause) {
      return new Error('the odds of a prompt are not known', { cause })
    }
  }

  dispose(): void {
    for (const sampler of [this.#sampler, ...this.#probes]) sampler.dispose()
    this.#likeliest?.dispose()
  }

  #config(): SamplerConfig {
    return {
      ...toSamplerConfig(this.#draw, this.#prompt, this.#drawn),
      ...(this.#grammar && { grammarEvaluationState: stateOf(this.#grammar) }),
    }
  }

  /** What is drawn, or what closes something instead. */
  async #say(output: number): Promise<Token | -1> {
    const { context } = this.#addon
    const until = this.#draw.ban?.until ?? 0
    const probe = this.#drawn.length < until ? undefined : this.#likeliest
    // Both at once: between one and the other the model would rest.
    const [likeliest, drawn] = await allEnded([
      probe && context.sampleToken(output, probe),
      context.sampleToken(output, this.#sampler),
    ])
    const isKnown = likeliest !== undefined && likeliest !== -1
    const token = (isKnown ? this.#closing?.instead(likeliest) : undefined) ?? drawn
    if (token === -1) return -1
    this.#drawn.push(token)
    this.#closing?.accept(token)
    if (token !== drawn) this.#grammar = this.#closing?.grammar()
    if (token !== drawn || this.#drawn.length === until) this.#sampler.applyConfig(this.#config())
    return token
  }

  async #oddsOf(token: Token, output: number): Promise<Odds | undefined> {
    const [all, likeliest] = this.#probes
    if (!all) return undefined
    const { context } = this.#addon
    const [weighed, ranked] = await allEnded([
      context.sampleToken(output, all, false, false, [[token], false, false, true, 0], true),
      likeliest &&
        context.sampleToken(
          output,
          likeliest,
          false,
          false,
          [[], false, false, false, this.#draw.logprobs ?? 0],
          false,
        ),
    ])
    return toOdds(token, weighed, ranked)
  }
}

/** Also those beside one that failed: their samplers are freed then. */
async function allEnded<const All extends readonly unknown[]>(all: All) {
  await Promise.allSettled(all)
  return Promise.all(all)
}

function samplerOf({ AddonSampler, model }: Addon, config: SamplerConfig): AddonSampler {
  const sampler = new AddonSampler(model)
  sampler.applyConfig(config)
  return sampler
}

/** Throws where the model said something that is no number. */
function toOdds(token: Token, [, , , weighed, totalWeight = 0]: Probed, ranked: Probed | undefined): Odds {
  const logits = pairs(weighed)
  const base = Math.max(...logits.map(([, logit]) => logit)) + Math.log(totalWeight)
  const toLogprob = ([id, logit]: readonly [Token, number]) => [id, logit - base] as const
  const logprob = logits.map(toLogprob).find(([id]) => id === token)?.[1] ?? Number.NaN
  if (!Number.isFinite(logprob)) throw new Error('the odds are no numbers')
  const top = pairs(ranked?.[3] ?? []).map(toLogprob)
  return { logprob, top: top.filter(([, logprob]) => Number.isFinite(logprob)) }
}

const pairs = (flat: readonly number[]): (readonly [Token, number])[] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as Token, flat[2 * at + 1] as number])
