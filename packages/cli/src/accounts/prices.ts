/**
 * Reads prices from a JSON file: `{"tiny": {"inputPerMillionUsd": 1, "outputPerMillionUsd": 2}, "*": …}`.
 * Core checks the values.
 */
import type { Prices } from '@modelmount/core'
import { readJson } from '../config/config-file.ts'

export function readPrices(path: string): Prices {
  const prices = readJson('--prices', path)
  if (typeof prices === 'object' && prices !== null && !Array.isArray(prices)) return prices as Prices
  throw new Error(`--prices: Expected an object of prices by model in ${path}.`)
}
