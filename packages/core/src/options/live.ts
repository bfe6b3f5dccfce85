/** The options that can change while the app serves. */
import { checkObject } from './check.ts'
import { checkPrices, checkTiers, type UnresolvedMeteringOptions } from './metering.ts'

/** Each option replaces the earlier one as a whole. An option that is left out keeps its value. */
export type LiveOptions = Pick<UnresolvedMeteringOptions, 'prices' | 'tiers'>

/** Checks them like `createLlm()`. Throws a `TypeError` that names the wrong option. */
export function checkLiveOptions(options: LiveOptions): void {
  checkObject('', options)
  for (const name of Object.keys(options))
    if (name !== 'prices' && name !== 'tiers')
      throw new TypeError(
        `\`${name}\` cannot change while the app serves. Expected \`prices\` or \`tiers\`; other options need a new createLlm().`,
      )
  if (options.prices !== undefined) checkPrices(options.prices)
  if (options.tiers !== undefined) checkTiers(options.tiers)
}
