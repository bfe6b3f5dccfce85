/**
 * Reads prices from a JSON file: `{"tiny": {"inputPerMillionUsd": 1, "outputPerMillionUsd": 2}, "*": …}`.
 * Core checks the values.
 */
import { readFileSync } from 'node:fs'
import type { Prices } from '@modelmount/core'

export function readPrices(path: string): Prices {
  const prices = parse(path)
  if (typeof prices === 'object' && prices !== null && !Array.isArray(prices)) return prices as Prices
  throw new Error(`--prices: Expected an object of prices by model in ${path}.`)
}

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new Error(`--prices: ${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
}
