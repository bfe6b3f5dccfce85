/** Limits as texts of a form. An empty text means no limit. */
import type { Limits } from '../api/types.ts'
import { endUserLimitNames, type LimitName, limitNames } from './limit-names.ts'

/** Texts by the path of the limit, such as `perEndUser.concurrent`. */
export type LimitTexts = Readonly<Record<string, string>>

export const ownLimitPaths = Object.keys(limitNames) as readonly LimitName[]
export const endUserLimitPaths = endUserLimitNames.map((name) => `perEndUser.${name}`)

export function toLimitTexts(limits: Limits | undefined): LimitTexts {
  const { perEndUser, ...own } = limits ?? {}
  return Object.fromEntries([
    ...Object.entries(own).map(([name, value]) => [name, `${value}`]),
    ...Object.entries(perEndUser ?? {}).map(([name, value]) => [`perEndUser.${name}`, `${value}`]),
  ])
}

/** @returns undefined without limits. `errors` has a message by path */
export function parseLimitTexts(texts: LimitTexts): {
  readonly limits: Limits | undefined
  readonly errors: Readonly<Record<string, string>>
} {
  const errors: Record<string, string> = {}
  const read = (paths: readonly string[]): Record<string, number> =>
    Object.fromEntries(
      paths.flatMap((path) => {
        const text = texts[path]?.trim() ?? ''
        if (text === '') return []
        const value = parseCount(text)
        if (value === undefined) {
          errors[path] = 'Expected a whole number from 1 on, or nothing for no limit.'
          return []
        }
        return [[path.replace('perEndUser.', ''), value]]
      }),
    )
  const [own, perEndUser] = [read(ownLimitPaths), read(endUserLimitPaths)]
  const limits = { ...own, ...(Object.keys(perEndUser).length > 0 && { perEndUser }) }
  return { limits: Object.keys(limits).length > 0 ? limits : undefined, errors }
}

/** A positive whole number, also with separators: `10,000`, `10 000`. */
function parseCount(text: string): number | undefined {
  const digits = text.replaceAll(/(?<=\d)[,_\s’'](?=\d{3}(?!\d))/g, '')
  const value = /^\d{1,12}$/.test(digits) ? Number(digits) : 0
  return value > 0 ? value : undefined
}
