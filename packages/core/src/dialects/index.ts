/** All dialects. */

import { checkKeys, describeValue } from '../options/check.ts'
import { createAdminTable } from './admin/index.ts'
import { anthropic } from './anthropic/index.ts'
import { modelmount } from './modelmount/index.ts'
import { ollama, ollamaWithCloud } from './ollama/index.ts'
import { openai, openaiWithLlamaServer } from './openai/index.ts'
import { createDialectTable, type DialectTable } from './table.ts'

const dialects = [ollama, openai, anthropic, modelmount] as const

/** Name of a public HTTP API. */
export type DialectName = (typeof dialects)[number]['name']

/** The names of all public APIs. */
export const dialectNames: readonly DialectName[] = dialects.map(({ name }) => name)

export interface RouteTableOptions {
  /**
   * Whether to serve the routes of Ollama's cloud, such as `POST /api/me`. They report that no cloud is available.
   *
   * @default false
   */
  readonly cloudRoutes?: boolean | undefined
  /**
   * Whether to serve routes of llama.cpp's server: `POST /tokenize`, `/detokenize`, `/apply-template` and `/rerank`.
   *
   * @default false
   */
  readonly llamaServerRoutes?: boolean | undefined
}

/** The options that add routes to a dialect. */
const extraRoutes = {
  cloudRoutes: { of: ollama, by: ollamaWithCloud },
  llamaServerRoutes: { of: openai, by: openaiWithLlamaServer },
} as const
const extraNames = Object.keys(extraRoutes) as (keyof typeof extraRoutes)[]

/**
 * Returns the routes of the public APIs. Throws a `TypeError` for an invalid option.
 *
 * @param names public APIs to serve. @default all
 */
export function routesFor(
  names: readonly DialectName[] = dialectNames,
  options: RouteTableOptions = {},
): DialectTable {
  checkKeys('', options, extraNames)
  const isList: boolean = Array.isArray(names)
  if (!isList || names.length === 0)
    throw new TypeError(`Expected \`dialects\` to be a list of ${dialectNames.join(', ')}`)
  for (const option of extraNames) checkExtra(option, options[option] ?? false, names)
  const chosen = names.map((name) => {
    const dialect = dialects.find((one) => one.name === name)
    if (!dialect) throw new TypeError(`Expected a dialect of ${dialectNames.join(', ')}, got '${name}'`)
    const extra = extraNames.find((option) => options[option] && extraRoutes[option].of === dialect)
    return extra ? extraRoutes[extra].by : dialect
  })
  return createDialectTable(chosen)
}

function checkExtra(option: keyof typeof extraRoutes, value: unknown, names: readonly DialectName[]): void {
  const { name } = extraRoutes[option].of
  if (typeof value !== 'boolean')
    throw new TypeError(`Expected \`${option}\` to be true or false, got ${describeValue(value)}`)
  if (value && !names.includes(name))
    throw new TypeError(`\`${option}\` belongs to the dialect '${name}', which \`dialects\` does not contain`)
}

/** Routes of the admin API, such as `/keys`. The host app mounts them below a path of its choice. */
export const adminRoutes = (): DialectTable => createAdminTable()
