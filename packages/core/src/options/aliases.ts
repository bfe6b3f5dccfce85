/** Checks the option `aliases`. */
import type { Aliases, WeightedModel } from '../models/model-aliases.ts'
import { isPattern, matchKeyOf } from '../models/name-pattern.ts'
import { checkKeys, checkNumber, checkObject, describeValue } from './check.ts'

/** Throws a `TypeError` that names the wrong alias. */
export function checkAliases(aliases: Aliases): void {
  checkObject('aliases', aliases)
  const named = Object.keys(aliases).filter((alias) => !isPattern(alias))
  const byKey = new Map(named.map((alias) => [matchKeyOf(alias), alias]))
  if (byKey.size < named.length) throw duplicateAlias(named)
  for (const [alias, target] of Object.entries(aliases)) {
    if (!isName(alias)) throw new TypeError(`Expected \`aliases\` to have names or patterns, got '${alias}'`)
    for (const model of modelsOf(alias, target)) {
      const other = byKey.get(matchKeyOf(model))
      if (other !== undefined)
        throw new TypeError(
          `Expected \`aliases['${alias}']\` to be the name of a model, but '${other}' is an alias, too`,
        )
    }
  }
}

/** Upper bound of the models of one alias. A call may try all of them. */
const maxTargets = 16

/** Returns the names in the target of an alias. Throws for anything else than a name, names, or models with weights. */
function modelsOf(alias: string, target: unknown): readonly string[] {
  const option = `aliases['${alias}']`
  if (!Array.isArray(target)) return [expectModelName(option, target)]
  if (target.length === 0 || target.length > maxTargets)
    throw new TypeError(`Expected \`${option}\` to have 1 to ${maxTargets} models, got ${target.length}`)
  const isWeighted = target.some((one) => typeof one === 'object')
  const models = target.map((one: unknown, index) => {
    const item = `${option}[${index}]`
    if (!isWeighted) return expectModelName(item, one)
    checkObject(item, one)
    checkKeys(`${item}.`, one as object, ['model', 'weight'])
    const { model, weight } = one as Partial<WeightedModel>
    checkNumber(`${item}.weight`, weight, 0, maxWeight)
    return expectModelName(`${item}.model`, model)
  })
  if (isWeighted && !target.some(({ weight }: WeightedModel) => weight > 0))
    throw new TypeError(`Expected \`${option}\` to have a weight above 0`)
  if (new Set(models.map(matchKeyOf)).size < models.length)
    throw new TypeError(`Expected \`${option}\` to have each model once`)
  return models
}

const maxWeight = 1_000_000

function expectModelName(option: string, model: unknown): string {
  if (typeof model === 'string' && isName(model) && !isPattern(model)) return model
  throw new TypeError(`Expected \`${option}\` to be the name of a model, got ${describeValue(model)}`)
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
