/** The options that can change while the app serves. */
import type { Aliases } from '../models/model-aliases.ts'
import { checkAliases } from './aliases.ts'
import { checkObject } from './check.ts'
import { checkPrices, checkTiers, type UnresolvedMeteringOptions } from './metering.ts'

/** Each option replaces the earlier one as a whole. An option that is left out keeps its value. */
export interface LiveOptions extends Pick<UnresolvedMeteringOptions, 'prices' | 'tiers'> {
  readonly aliases?: Aliases | undefined
}

const names = ['prices', 'tiers', 'aliases']

/** Checks them like `createLlm()`. Throws a `TypeError` that names the wrong option. */
export function checkLiveOptions(options: LiveOptions): void {
  checkObject('', options)
  for (const name of Object.keys(options))
    if (!names.includes(name))
      throw new TypeError(
        `\`${name}\` cannot change while the app serves. Expected \`prices\`, \`tiers\` or \`aliases\`; other options need a new createLlm().`,
      )
  if (options.prices !== undefined) checkPrices(options.prices)
  if (options.tiers !== undefined) checkTiers(options.tiers)
  if (options.aliases !== undefined) checkAliases(options.aliases)
}
