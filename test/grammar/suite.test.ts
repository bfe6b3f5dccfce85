import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { LlmError } from '../../packages/core/src/errors.ts'
import { checkGrammar } from '../../packages/core/src/grammar/gbnf/check.ts'
import { schemaToGrammar } from '../../packages/core/src/grammar/schema/json-schema.ts'
import { GbnfMatcher } from '../support/gbnf-matcher.ts'

interface Group {
  readonly description: string
  readonly schema: unknown
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[]
}

/** Valid instances that the grammar rejects, with the reason. */
const knownRejections: readonly (readonly [about: RegExp, why: string])[] = [
  [/^format\/(date-)?time: .*leap second/, 'the validity of a leap second depends on the offset from UTC'],
  [
    /^format\/duration: .*many digits/,
    'numbers have at most nine digits, since models can repeat digits without end',
  ],
  [/^format\/email: .*(quoted|literal)/, 'quoted names and address literals are not supported'],
  [/^format\/email: .*tilde/, 'zod 4 rejects a tilde'],
  [/^format\/hostname: .*maximum label length/, 'labels have up to 31 letters and digits'],
  [/^format\/hostname: .*(hyphens|A-label)/, 'RFC 5892 restricts what follows `--`'],
  [/^format\/uri: .*valid URL$/, 'hosts are names or IPv4 addresses'],
]

const folder = fileURLToPath(new URL('json-schema-test-suite', import.meta.url))
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.json'))
  .sort()
interface Count {
  schemas: number
  rejected: string[]
  accepted: number
  missed: string[]
  invalid: number
  wronglyAccepted: string[]
}
const counts: Record<string, Count> = {}

describe.each(files)('the grammar of each schema in %s', (file) => {
  const keyword = file.replace(/\.json$/, '').replaceAll('\\', '/')
  const groups: readonly Group[] = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8'))
  const count: Count = {
    ...{ schemas: 0, rejected: [], accepted: 0 },
    ...{ missed: [], invalid: 0, wronglyAccepted: [] },
  }
  counts[keyword] = count

  test.each(groups)('$description', ({ description, schema, tests }) => {
    const grammar = grammarOf(schema, count.rejected)
    count.schemas++
    if (grammar === undefined) return
    checkGrammar(grammar)
    const matcher = new GbnfMatcher(grammar)
    const unknown: string[] = []
    for (const { description: what, data, valid } of tests) {
      const isAccepted = textsOf(data).some((text) => matcher.matches(text))
      const about = `${keyword}: ${description}: ${what}`
      if (!valid) count.invalid++
      else if (isAccepted) count.accepted++
      if (!valid && isAccepted) count.wronglyAccepted.push(about)
      if (valid && !isAccepted) count.missed.push(about)
      if (valid && !isAccepted && !knownRejections.some(([words]) => words.test(about))) unknown.push(about)
    }

    expect(count.wronglyAccepted).toEqual([])
    expect(unknown).toEqual([])
  })
})

test('every test file is counted, and every known rejection occurs', () => {
  process.stdout.write(`${table()}\n`)
  const missed = Object.values(counts).flatMap((count) => count.missed)

  expect(Object.keys(counts).length).toBe(files.length)
  expect(knownRejections.filter(([words]) => !missed.some((about) => words.test(about)))).toEqual([])
})

/** Returns `undefined` if the schema has an unsupported keyword, and adds the keyword to `rejected`. */
function grammarOf(schema: unknown, rejected: string[]): string | undefined {
  try {
    return schemaToGrammar(schema)
  } catch (error) {
    if (!(error instanceof LlmError) || error.code !== 'invalid_request') throw error
    rejected.push(/"([^"]*)" at/.exec(error.message)?.[1] ?? error.message)
    return undefined
  }
}

/** Writes a value as JSON with its properties in different orders, at most 200 texts per order. */
function textsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return join(value.map(textsOf)).map((items) => `[${items.join(',')}]`)
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value)]
  const entries = Object.entries(value).map(([name, inner]) =>
    textsOf(inner).map((text) => `${JSON.stringify(name)}:${text}`),
  )
  return permutations(entries).flatMap((order) => join(order).map((parts) => `{${parts.join(',')}}`))
}

const join = (lists: readonly (readonly string[])[]): readonly (readonly string[])[] =>
  lists.reduce<readonly (readonly string[])[]>(
    (all, list) => all.flatMap((head) => list.map((item) => [...head, item])).slice(0, 200),
    [[]],
  )

function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length <= 1 || items.length > 5) return [items]
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]))
}

function table(): string {
  const lines = Object.entries(counts).map(
    ([keyword, { schemas, rejected, accepted, missed, invalid, wronglyAccepted }]) =>
      [
        `${keyword.padEnd(28)} ${schemas - rejected.length} of ${schemas} schemas`,
        `${accepted} of ${accepted + missed.length} valid instances accepted`,
        `${wronglyAccepted.length} of ${invalid} invalid`,
        ...(rejected.length > 0 ? [`rejected: ${[...new Set(rejected)].join(', ')}`] : []),
      ].join('; '),
  )
  return ['JSON Schema Test Suite, draft 2020-12:', ...lines].join('\n')
}
