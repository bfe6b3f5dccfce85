import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { environmentHelp } from './environment.ts'

const packages = join(import.meta.dirname, '../..')

/** Names of variables of Modelmount and Ollama in the source text. */
const namesIn = (folder: string): readonly string[] =>
  readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && path !== 'environment.ts')
    .flatMap(
      (path) =>
        readFileSync(join(packages, folder, path), 'utf8').match(/\b(?:OLLAMA|MODELMOUNT)_[A-Z_]+\b/g) ?? [],
    )

test('--help lists each variable that the code reads', () => {
  const help = environmentHelp()

  const missing = [...namesIn('core/src'), ...namesIn('cli/src')].filter(
    (name) => !help.includes(` ${name} `),
  )
  expect([...new Set(missing)]).toEqual([])
})

test('a command lists the variables that it reads', () => {
  const listed = [...environmentHelp('database').matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)

  expect(listed).toEqual(['OLLAMA_MODELS', 'PGPASSWORD'])
  expect(environmentHelp('run')).toContain('\n  OLLAMA_NOHISTORY ')
  expect(environmentHelp('client')).not.toContain('OLLAMA_NOHISTORY')
})
