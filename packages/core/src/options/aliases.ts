/** Checks the option `aliases`. */
import type { Aliases } from '../models/model-aliases.ts'
import { isPattern, matchKeyOf } from '../models/name-pattern.ts'
import { checkObject, describeValue } from './check.ts'

/** Throws a `TypeError` that names the wrong alias. */
export function checkAliases(aliases: Aliases): void {
  checkObject('aliases', aliases)
  const named = Object.keys(aliases).filter((alias) => !isPattern(alias))
  const byKey = new Map(named.map((alias) => [matchKeyOf(alias), alias]))
  if (byKey.size < named.length) throw duplicateAlias(named)
  for (const [alias, target] of Object.entries(aliases)) {
    if (!isName(alias)) throw new TypeError(`Expected \`aliases\` to have names or patterns, got '${alias}'`)
    if (typeof target !== 'string' || !isName(target) || isPattern(target))
      throw new TypeError(
        `Expected \`aliases['${alias}']\` to be the name of a model, got ${describeValue(target)}`,
      )
    const other = byKey.get(matchKeyOf(target))
    if (other !== undefined)
      throw new TypeError(
        `Expected \`aliases['${alias}']\` to be the name of a model, but '${other}' is an alias, too`,
      )
  }
}

const isName = (text: string): boolean => text !== '' && text.trim() === text

function duplicateAlias(names: readonly string[]): TypeError {
  const [first, second] = names.flatMap((name) => {
    const same = names.find((other) => other !== name && matchKeyOf(other) === matchKeyOf(name))
    return same === undefined ? [] : [name, same]
  })
  return new TypeError(
    `Expected \`aliases\` to have different names, but '${first}' and '${second}' are the same`,
  )
}
