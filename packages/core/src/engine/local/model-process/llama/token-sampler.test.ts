import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import type { SamplerConfig } from '../decoding/sampling.ts'
import type { Addon } from './addon.ts'
import { JsonAutoClose } from './json-auto-close.ts'
import { TokenSampler } from './token-sampler.ts'

const end = 0 as Token
const quote = 1 as Token
const paren = 2 as Token
const word = 3 as Token
const other = 4 as Token
const draw = { temperature: 1, topK: 40, topP: 1, minP: 0, seed: 1, bias: [] }
const penalty = { repeat: 1.5, presence: 0, frequency: 0, window: 8 }

/**
 * Creates a sampler inside a JSON string.
 * @param likeliest most likely token of each step
 */
function inText(likeliest: readonly Token[], more: object = {}) {
  const configs: SamplerConfig[] = []
  const weighed: Token[] = []
  const steps = [...likeliest]
  let probes = 0
  let live = 0
  class AddonSampler {
    #config: SamplerConfig | undefined
    constructor() {
      live++
    }
    static canBeNextTokenForGrammarEvaluationState(_state: object, token: Token) {
      return [quote, paren, word].includes(token)
    }
    static acceptGrammarEvaluationStateToken({ said }: { said: Token[] }, token: Token) {
      said.push(token)
    }
    applyConfig(config: SamplerConfig) {
      this.#config = config
      if (config.grammarEvaluationState) configs.push(structuredClone(config))
    }
    get holds() {
      return this.#config?.grammarEvaluationState as { said: Token[] } | undefined
    }
    dispose() {
      live--
    }
  }
  const context = {
    async sampleToken(_output: number, sampler: AddonSampler, ...[, , logits]: unknown[]) {
      const [asked] = (logits ?? []) as [(readonly Token[])?]
      if (asked) {
        weighed.push(...asked)
        return [end, undefined, undefined, asked.flatMap((token) => [token, -1]), 1]
      }
      if (!sampler.holds) {
        probes++
        return steps.shift()
      }
      sampler.holds.said.push(word)
      return word
    },
  }
  const addon = { context, model: {}, AddonSampler } as unknown as Addon
  const stateWith = (said: readonly Token[]): LlamaGrammarEvaluationState => {
    const _state = { said: [...said] }
    return { _state, clone: () => stateWith(_state.said) } as unknown as LlamaGrammarEvaluationState
  }
  const marks = { quote, brackets: [other], letters: [paren], newline: other }
  const closing = new JsonAutoClose(marks, addon.AddonSampler, stateWith([]), (token) => token === end)
  const drawer = new TokenSampler(addon, { ...draw, ...more }, [9 as Token], stateWith([]), closing)
  return { drawer, configs, weighed, probes: () => probes, live: () => live }
}

async function sampleThree(drawer: TokenSampler): Promise<readonly (Token | undefined)[]> {
  const tokens: (Token | undefined)[] = []
  for (let index = 0; index < 3; index++) {
    const sample = await drawer.sample(0)
    tokens.push(sample instanceof Error ? undefined : sample.token)
  }
  return tokens
}

test('a closing token replaces the sampled token in the output, the grammar and the penalties', async () => {
  const { drawer, configs, live } = inText([word, end, word], { penalty })

  const said = await sampleThree(drawer)
  drawer.dispose()

  expect(said).toEqual([word, quote, word])
  expect(configs.length).toBe(2)
  expect(configs[1]?.grammarEvaluationState).toEqual({ said: [word, quote] })
  expect(configs[1]?.repeatPenaltyTokens).toEqual(Uint32Array.of(9, word, quote))
  expect(live()).toBe(0)
})

test('logprobs belong to the closing token, not to the sampled token', async () => {
  const { drawer, weighed } = inText([end], { logprobs: 0 })

  const sample = await drawer.sample(0)

  expect(weighed).toEqual([quote])
  expect(sample).toEqual({ token: quote, logprobs: { logprob: 0, top: [] } })
})

test('while end tokens are banned, no JSON is closed', async () => {
  const { drawer, probes } = inText([end, end], { ban: { tokens: [end], until: 2 } })

  const said = await sampleThree(drawer)

  expect(said).toEqual([word, word, quote])
  expect(probes()).toBe(1)
})
