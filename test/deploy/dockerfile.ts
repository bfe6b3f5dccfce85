/** Reads the instructions of a Dockerfile: only the syntax that docs/operations/deploy uses. */

export interface Instruction {
  readonly name: string
  /** `{ from: 'packages' }` for `--from=packages`. */
  readonly flags: Readonly<Record<string, string>>
  /** Words, or the list in JSON. */
  readonly args: readonly string[]
  /** Everything after the flags. */
  readonly text: string
}

export function parseDockerfile(source: string): readonly Instruction[] {
  const lines = source
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
  return lines.filter((line) => line.trim() !== '').map(parseInstruction)
}

function parseInstruction(line: string): Instruction {
  const [, name = '', flagText = '', text = ''] = /^(\w+)((?:\s+--[\w-]+=\S+)*)\s+(.*)$/.exec(line) ?? []
  const flags = Object.fromEntries(
    Array.from(flagText.matchAll(/--([\w-]+)=(\S+)/g), ([, flag = '', value = '']) => [flag, value]),
  )
  const [, before = '', list] = /^(.*?)(\[.*\])$/.exec(text) ?? []
  const args =
    list === undefined
      ? text.trim().split(/\s+/)
      : [...before.trim().split(/\s+/).filter(Boolean), ...(JSON.parse(list) as string[])]
  return { name: name.toUpperCase(), flags, args, text }
}
