/** Checks which names the entry points of core export. Reads the source files instead of importing them. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const core = new URL('../packages/core/', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, core), 'utf8')

const files = Object.entries(JSON.parse(read('package.json')).exports as Record<string, string | Files>)
  .flatMap(([name, to]) => (typeof to === 'string' ? [] : [[name, to] as const]))
  .map(([name, to]) => [name, to.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')] as const)
interface Files {
  readonly types: string
  readonly default: string
}

function namesOf(file: string): readonly string[] {
  const lists = [...read(file).matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map(([, list = '']) => list)
  return lists
    .flatMap((list) => list.split(',').map((name) => name.trim().replace(/^type /, '')))
    .filter(Boolean)
}

test('the root entry point of core exports at most 64 names', () => {
  expect(namesOf('src/index.ts').length).toBeLessThanOrEqual(64)
  expect(read('src/index.ts')).not.toMatch(/^export \*|^export (const|function|class|interface|type \w)/m)
})

test('each name is exported by one entry point only, except LlmError and DatabaseLocation', () => {
  const all = files.flatMap(([, file]) => namesOf(file))
  const repeated = new Set(all.filter((name, index) => all.indexOf(name) < index))

  expect([...repeated].sort()).toEqual(['DatabaseLocation', 'LlmError'])
})
