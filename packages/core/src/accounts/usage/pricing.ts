/** What tokens cost. Money is whole nano-dollars, billionths of a dollar; it is rounded once, at the end. */
import type { TokenUsage } from '../../engine/events.ts'

/** In dollars per million tokens. */
export interface Price {
  readonly inputPerMillionUsd: number
  readonly outputPerMillionUsd: number
  /** Of a prompt, what was there already. @default a tenth of `inputPerMillionUsd` */
  readonly cachedInputPerMillionUsd?: number | undefined
  /** Of a prompt, what was read up to a breakpoint and is kept. @default `inputPerMillionUsd` */
  readonly cacheWritePerMillionUsd?: number | undefined
}

/** By model; `*` is all others. */
export type Prices = Readonly<Record<string, Price>>

/** Each token of a call is of one kind. */
export interface TokensByKind {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
}

/** Nano-dollars per million tokens. */
export type Rates = Readonly<Record<keyof TokensByKind, bigint>>

/** More than anybody asks; and the cost of the largest call is still an exact number. */
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

/** What was read from a cache is cheap, whichever it was; what is written to one was read for it. */
export function countByKind(usage: TokenUsage): TokensByKind {
  const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage
  const cached = cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h']
  const cacheWrite = Math.max(0, cached - reusedTokens)
  const input = Math.max(0, inputTokens - reusedTokens - cacheWrite)
  return { input, cachedInput: reusedTokens, cacheWrite, output: outputTokens }
}

/** In nano-dollars. @param isBatch of those that can wait: half of it */
export function computeCost(tokens: TokensByKind, rates: Rates, isBatch = false): number {
  const millionths =
    BigInt(tokens.input) * rates.input +
    BigInt(tokens.cachedInput) * rates.cachedInput +
    BigInt(tokens.cacheWrite) * rates.cacheWrite +
    BigInt(tokens.output) * rates.output
  return Number(divideRounded(millionths, divisorOf(isBatch)))
}

/** What a prompt of so many tokens costs at most, with so many said to it. */
export const toWorstCaseTokens = (inputTokens: number, outputTokens: number, rates: Rates): TokensByKind => ({
  ...noTokens,
  [mostExpensiveInput(rates)]: inputTokens,
  output: outputTokens,
})

/** How many tokens may be said to a prompt for so many nano-dollars; nothing where it is not enough for the prompt. */
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

/** Of what a token of a prompt can be. */
const mostExpensiveInput = ({ input, cachedInput, cacheWrite }: Rates): keyof TokensByKind => {
  if (input >= cachedInput && input >= cacheWrite) return 'input'
  return cacheWrite >= cachedInput ? 'cacheWrite' : 'cachedInput'
}

const divisorOf = (isBatch: boolean): bigint => (isBatch ? 2_000_000n : 1_000_000n)

const toNanoUsd = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

/** Halves go up. */
const divideRounded = (value: bigint, by: bigint): bigint => (value + by / 2n) / by
