/** All dialects. */

import { checkKeys, describeValue } from '../options/check.ts'
import { createAdminTable } from './admin/index.ts'
import { anthropic } from './anthropic/index.ts'
import { ollama, ollamaWithCloud } from './ollama/index.ts'
import { openai } from './openai/index.ts'
import { createDialectTable, type DialectTable } from './table.ts'

const dialects = [ollama, openai, anthropic] as const

export type DialectName = (typeof dialects)[number]['name']

export const dialectNames: readonly DialectName[] = dialects.map(({ name }) => name)

export interface RouteTableOptions {
  /**
   * Whether to serve the routes of Ollama's cloud, such as `POST /api/me`. They report that no cloud is available.
   *
   * @default false
   */
  readonly cloudRoutes?: boolean | undefined
}

/**
 * Returns the routes of the public APIs. Throws a `TypeError` for an invalid option.
 *
 * @param names public APIs to serve. @default all
 */
export function routesFor(
  names: readonly DialectName[] = dialectNames,
  options: RouteTableOptions = {},
): DialectTable {
  checkKeys('', options, ['cloudRoutes'])
  const { cloudRoutes = false } = options
  const isList: boolean = Array.isArray(names)
  if (!isList || names.length === 0)
    throw new TypeError(`Expected \`dialects\` to be a list of ${dialectNames.join(', ')}`)
  const chosen = names.map((name) => {
    const dialect = dialects.find((one) => one.name === name)
    if (!dialect) throw new TypeError(`Expected a dialect of ${dialectNames.join(', ')}, got '${name}'`)
    return dialect === ollama && cloudRoutes ? ollamaWithCloud : dialect
  })
  if (typeof cloudRoutes !== 'boolean')
    throw new TypeError(`Expected \`cloudRoutes\` to be true or false, got ${describeValue(cloudRoutes)}`)
  if (cloudRoutes && !names.includes('ollama'))
    throw new TypeError("`cloudRoutes` belongs to the dialect 'ollama', which `dialects` does not contain")
  return createDialectTable(chosen)
}

/** Routes of the admin API, such as `/keys`. The host app mounts them below a path of its choice. */
export const adminRoutes = (): DialectTable => createAdminTable()
