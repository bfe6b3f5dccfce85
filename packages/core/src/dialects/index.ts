/** All dialects. */
import { createAdminTable } from './admin/index.ts'
import { anthropic } from './anthropic/index.ts'
import { ollama } from './ollama/index.ts'
import { openai } from './openai/index.ts'
import { createDialectTable, type DialectTable } from './table.ts'

const dialects = [ollama, openai, anthropic] as const

export type DialectName = (typeof dialects)[number]['name']

export const dialectNames: readonly DialectName[] = dialects.map(({ name }) => name)

/** @param names public APIs to serve. @default all */
export function routesFor(names: readonly DialectName[] = dialectNames): DialectTable {
  const isList: boolean = Array.isArray(names)
  if (!isList || names.length === 0)
    throw new TypeError(`Expected \`dialects\` to be a list of ${dialectNames.join(', ')}`)
  const chosen = names.map((name) => {
    const dialect = dialects.find((one) => one.name === name)
    if (!dialect) throw new TypeError(`Expected a dialect of ${dialectNames.join(', ')}, got '${name}'`)
    return dialect
  })
  return createDialectTable(chosen)
}

/** Routes of the admin API, such as `/keys`. The host app mounts them below a path of its choice. */
export const adminRoutes = (): DialectTable => createAdminTable()
