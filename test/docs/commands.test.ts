/** Checks that each `modelmount …` of the pages names a command and options that exist. */
import { expect, test } from 'vitest'
import { program } from '../../packages/cli/src/program.ts'
import { documentationPages, shellLines } from '../support/pages.ts'

type CliCommand = typeof program

interface ShownCommand {
  readonly page: string
  readonly words: readonly string[]
}

/** Returns the words of each `modelmount` in shell code. A service of Docker may have this name, too. */
const commandsOf = (page: string): readonly ShownCommand[] =>
  shellLines(page)
    .map((line) => line.replace(/(^|\s)#.*$/, ''))
    .flatMap((line) =>
      [...line.matchAll(/(?:^|[\s(])(?:npx )?modelmount (?!npx )((?:"[^"]*"|[^|&;>)"])*)/g)].map(
        ([, text = '']) => ({
          page,
          words: text.match(/"[^"]*"|\S+/g) ?? [],
        }),
      ),
    )

/** Returns what is wrong with a command, if anything. */
function mistakeIn({ page, words }: ShownCommand): string | undefined {
  let command: CliCommand = program
  let rest = words
  for (;;) {
    const sub = command.commands.find(
      (one) => one.name() === rest[0] || one.aliases().includes(rest[0] ?? ''),
    )
    if (!sub) break
    command = sub
    rest = rest.slice(1)
  }
  const shown = `${page}: modelmount ${words.join(' ')}`
  if (command.commands.length > 0 && rest.length > 0 && !rest[0]?.startsWith('-'))
    return `${shown}: no such command`
  const known = new Set(['-h', '--help', ...command.options.flatMap(({ long, short }) => [long, short])])
  const unknown = rest
    .map((word) => word.split('=')[0] ?? '')
    .find((word) => /^--?[a-z]/.test(word) && !known.has(word))
  return unknown === undefined ? undefined : `${shown}: no option ${unknown}`
}

test('commands on the pages have names and options that exist', () => {
  const commands = documentationPages.flatMap(commandsOf)

  expect(commands.length).toBeGreaterThan(80)
  expect(commands.map(mistakeIn).filter((mistake) => mistake !== undefined)).toEqual([])
})

test('mistakes are found', () => {
  const mistakes = ['serve --no-such-flag', 'keys make laptop', 'serve --auth keys', 'list --json'].map(
    (text) => mistakeIn({ page: 'page.md', words: text.split(' ') }),
  )

  expect(mistakes).toEqual([
    'page.md: modelmount serve --no-such-flag: no option --no-such-flag',
    'page.md: modelmount keys make laptop: no such command',
    undefined,
    undefined,
  ])
})
