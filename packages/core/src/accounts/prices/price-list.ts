/** The prices of the app, by model. */
import { type Price, type Prices, type Rates, toRates } from './pricing.ts'

export class PriceList {
  readonly #keyOf: (model: string) => string
  #prices: Prices = {}
  #rates: ReadonlyMap<string, Rates> = new Map()

  /** @param keyOf maps all names of one model to the same string */
  constructor(prices: Prices, keyOf: (model: string) => string) {
    this.#keyOf = keyOf
    this.set(prices)
  }

  set(prices: Prices): void {
    const entries = Object.entries(prices)
    this.#prices = structuredClone(prices)
    this.#rates = new Map(
      entries.map(([model, price]) => [model === '*' ? model : this.#keyOf(model), toRates(price)]),
    )
  }

  /** Returns undefined for a model without a price. */
  ratesOf(model: string): Rates | undefined {
    return this.#rates.get(this.#keyOf(model)) ?? this.#rates.get('*')
  }

  /** The prices as the app has set them. */
  list(): readonly (Price & { readonly model: string })[] {
    return Object.entries(this.#prices).map(([model, price]) => ({ model, ...price }))
  }
}
