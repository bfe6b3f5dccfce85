/** Routes of prices. The app sets them with the option `prices`, so they cannot be changed here. */
import { internals } from '../../../llm.ts'
import type { AdminRoute } from '../route.ts'
import { PriceReport } from '../schema/prices.ts'

export const priceRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/prices',
    name: 'listPrices',
    summary: 'List the prices of the app, and its models without a price.',
    response: PriceReport,
    handle: async ({ llm }) => {
      const { prices } = llm[internals]
      const models = await llm.models.list()
      return {
        data: prices?.list() ?? [],
        unpricedModels: models.map(({ name }) => name).filter((name) => !prices?.ratesOf(name)),
      }
    },
  },
]
