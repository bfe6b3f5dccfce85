/** Computes the cost of a call in nano-dollars (billionths of a dollar). The total is rounded once. */
import type { TokenUsage } from '../../engine/events.ts'

/** In dollars per million tokens. */
export interface Price {
  readonly inputPerMillionUsd: number
  readonly outputPerMillionUsd: number
  /** Prompt tokens from the cache. @default a tenth of `inputPerMillionUsd` */
  readonly cachedInputPerMillionUsd?: number | undefined
  /** Prompt tokens that are written to the cache, up to a breakpoint. @default `inputPerMillionUsd` */
  readonly cacheWritePerMillionUsd?: number | undefined
}

/** Prices by model. The name `*` matches all other models. */
export type Prices = Readonly<Record<string, Price>>

/** Numbers of tokens. Each token of a call is counted in exactly one field. */
export interface TokensByKind {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
}

/** Nano-dollars per million tokens. */
export type Rates = Readonly<Record<keyof TokensByKind, bigint>>

/**
 * The highest allowed price. Even at this price, a JavaScript number represents the cost of the largest call
 * exactly.
 */
export const maxPricePerMillionUsd = 100_000

export function toRates(price: Price): Rates {
  const input = toNanoUsd(price.inputPerMillionUsd)
  return {
    input,
    cachedInput:
      price.cachedInputPerMillionUsd === undefined
        ? divideRounded(input, 10n)
        : toNanoUsd(price.cachedInputPerMillionUsd),
    cacheWrite:
      price.cacheWritePerMillionUsd === undefined ? input : toNanoUsd(price.cacheWritePerMillionUsd),
    output: toNanoUsd(price.outputPerMillionUsd),
  }
}

/**
 * Assigns each token to one kind. Tokens whose KV state was reused count as `cachedInput`, whichever cache it
 * came from. Other prompt tokens before a breakpoint count as `cacheWrite`.
 */
export function countByKind(usage: TokenUsage): TokensByKind {
  const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage
  const cached = cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h']
  const cacheWrite = Math.max(0, cached - reusedTokens)
  const input = Math.max(0, inputTokens - reusedTokens - cacheWrite)
  return { input, cachedInput: reusedTokens, cacheWrite, output: outputTokens }
}

/** Cost in nano-dollars. @param isBatch halves the price */
export function computeCost(tokens: TokensByKind, rates: Rates, isBatch = false): number {
  const millionths =
    BigInt(tokens.input) * rates.input +
    BigInt(tokens.cachedInput) * rates.cachedInput +
    BigInt(tokens.cacheWrite) * rates.cacheWrite +
    BigInt(tokens.output) * rates.output
  return Number(divideRounded(millionths, divisorOf(isBatch)))
}

/** Counts all input tokens as the most expensive kind of prompt token. */
export const toWorstCaseTokens = (inputTokens: number, outputTokens: number, rates: Rates): TokensByKind => ({
  ...noTokens,
  [mostExpensiveInput(rates)]: inputTokens,
  output: outputTokens,
})

/**
 * Returns how many output tokens `nanoUsd` pays for in addition to the prompt. Undefined if it does not even
 * pay for the prompt.
 */
export function affordableOutput(
  nanoUsd: bigint,
  inputTokens: number,
  rates: Rates,
  isBatch = false,
): number | undefined {
  const remaining = nanoUsd * divisorOf(isBatch) - BigInt(inputTokens) * rates[mostExpensiveInput(rates)]
  if (remaining < 0n) return undefined
  return rates.output === 0n ? Number.POSITIVE_INFINITY : Number(remaining / rates.output)
}

export const isFree = (rates: Rates): boolean => Object.values(rates).every((rate) => rate === 0n)

const noTokens: TokensByKind = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 }

/** The kind of prompt token with the highest price. */
const mostExpensiveInput = ({ input, cachedInput, cacheWrite }: Rates): keyof TokensByKind => {
  if (input >= cachedInput && input >= cacheWrite) return 'input'
  return cacheWrite >= cachedInput ? 'cacheWrite' : 'cachedInput'
}

const divisorOf = (isBatch: boolean): bigint => (isBatch ? 2_000_000n : 1_000_000n)

const toNanoUsd = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

/** Rounds halves up. */
const divideRounded = (value: bigint, by: bigint): bigint => (value + by / 2n) / by
