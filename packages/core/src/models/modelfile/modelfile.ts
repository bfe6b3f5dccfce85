/** The text that says what a model is made of. Shape: Ollama `parser/parser.go`, `docs/modelfile.mdx`. */
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { Recipe, RecipeMessage } from './defaults.ts'
import { addParameter } from './modelfile-parameters.ts'

export interface Modelfile extends Recipe {
  /** A model's name, or files: one, and those that belong to it. */
  readonly from: readonly string[]
  /** A file with a LoRA. */
  readonly adapter?: string
  /** A file with a smaller model that guesses for this one. */
  readonly draft?: string
  readonly renderer?: string
  readonly parser?: string
  /** The least version of Ollama that it needs: `0.14.0`. */
  readonly requires?: string
  /** Parameters that nothing follows any more. They are in the text, and not in `parameters`. */
  readonly ignored: readonly string[]
}

/** Throws `invalid_request`, with the number of the line. */
export function parseModelfile(source: string | Uint8Array): Modelfile {
  const file: Draft = { from: [], parameters: {}, license: [], messages: [], ignored: [] }
  for (const command of commandsIn(typeof source === 'string' ? source : decode(source)))
    readers[command.name](file, command)
  if (file.from.length === 0) throw invalidRequest('no FROM line')
  return file
}

/**
 * Parses back to the same, but for what no Modelfile can say: a line that ends with `"""` and is not the last of its value.
 * Parameters and roles with names that are no words are left out: they could be lines of their own.
 */
export function printModelfile(file: Omit<Modelfile, 'ignored'>): string {
  const one = (command: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${command} ${quote(value)}`]
  return [
    ...file.from.flatMap((from) => one('FROM', from)),
    ...one('ADAPTER', file.adapter),
    ...one('DRAFT', file.draft),
    ...one('TEMPLATE', file.template),
    ...one('SYSTEM', file.system),
    ...one('RENDERER', file.renderer),
    ...one('PARSER', file.parser),
    ...one('REQUIRES', file.requires),
    ...Object.entries(file.parameters)
      .filter(([name]) => isWord(name))
      .flatMap(([name, value]) => [value].flat().flatMap((part) => one(`PARAMETER ${name}`, textOf(part)))),
    ...file.license.flatMap((text) => one('LICENSE', text)),
    ...file.messages
      .filter(({ role }) => isWord(role))
      .flatMap(({ role, content }) => one(`MESSAGE ${role}`, content)),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

type Draft = { -readonly [key in keyof Modelfile]: Modelfile[key] } & {
  from: string[]
  parameters: Record<string, unknown>
  license: string[]
  messages: RecipeMessage[]
  ignored: string[]
}

interface Command {
  readonly name: CommandName
  readonly line: number
  /** Of a parameter or a message: the word in front of the value. */
  readonly word: string
  readonly value: string
}

const readers = {
  from: (file, { value }) => file.from.push(value),
  license: (file, { value }) => file.license.push(value),
  template: (file, { value }) => (file.template = value),
  system: (file, { value }) => (file.system = value),
  adapter: (file, { value }) => (file.adapter = value),
  draft: (file, { value }) => (file.draft = value),
  renderer: (file, { value }) => (file.renderer = value),
  parser: (file, { value }) => (file.parser = value),
  parameter: (file, { word, value }) => addParameter(file, word, value),
  message: (file, { line, word, value }) => {
    if (!roles.includes(word)) throw wrong(line, `message role must be one of ${listed(roles)}`)
    file.messages.push({ role: word, content: value })
  },
  requires: (file, { value }) => {
    if (!semver.test(value)) throw invalidRequest('requires must be a valid semver (e.g. 0.14.0)')
    file.requires = value.replace(/^v/, '')
  },
} satisfies Record<string, (file: Draft, command: Command) => unknown>
type CommandName = keyof typeof readers

const roles: readonly string[] = ['system', 'user', 'assistant']
/** As Go reads it: minor and patch may be left out. */
const semver = /^v?\d+(\.\d+(\.\d+(-[\w.-]+)?(\+[\w.-]+)?)?)?$/

/** Line by line: a quoted value may have several. */
function* commandsIn(text: string): Generator<Command> {
  // Every second one is what ends the line in front of it.
  const lines = text.split(/(\r\n|\n|\r)/)
  for (let at = 0; at < lines.length; at += 2) {
    const line = (lines[at] ?? '').replace(/^[ \t]+/, '')
    if (line === '' || line.startsWith('#')) continue
    const isLast = at === lines.length - 1
    const head = headOf(line, at / 2 + 1, isLast)
    const quotes = /^(?:"""|"|)/.exec(head.rest)?.[0] ?? ''
    const first = head.rest.slice(quotes.length)
    if (quotes === '') {
      yield { ...head, value: first.trimEnd() }
      continue
    }
    const start = at
    const isClosed = (): boolean => (at === start ? first : (lines[at] ?? '')).trimEnd().endsWith(quotes)
    while (!isClosed()) {
      at += 2
      if (at >= lines.length) throw unexpectedEnd()
    }
    const value = [first, ...lines.slice(start + 1, at + 1)].join('').trimEnd()
    yield { ...head, value: value.slice(0, -quotes.length) }
  }
}

/** @param isLast nothing ends the line */
function headOf(text: string, line: number, isLast: boolean): Omit<Command, 'value'> & { rest: string } {
  const [, command = '', after = ''] = /^([a-z]*)(.*)$/is.exec(text) ?? []
  const name = command.toLowerCase()
  if (isLast && isCommand(name) && after === '') throw unexpectedEnd()
  if (!isCommand(name) || !/^[ \t]/.test(after))
    throw wrong(line, `command must be one of ${listed(Object.keys(readers))}`)
  if (name !== 'parameter' && name !== 'message') return { name, line, word: '', rest: after.trimStart() }
  const [, word, rest] = /^[ \t]+(\w+)[ \t](.*)$/s.exec(after) ?? []
  if (word === undefined || rest === undefined) throw unexpectedEnd()
  return { name, line, word, rest: rest.trimStart() }
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(readers, name)

/** By its mark; without one it is UTF-8. */
function decode(bytes: Uint8Array): string {
  const [first, second] = bytes
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
  return new TextDecoder(encoding).decode(bytes)
}

/** Bare where it can be. Three marks may have others within them. */
function quote(value: string): string {
  if (value !== '' && !/[\r\n]|^"/.test(value) && value.trim() === value) return value
  const quotes = value.includes('"') ? '"""' : '"'
  return `${quotes}${value}${quotes}`
}

const isWord = (name: string): boolean => /^\w+$/.test(name)

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))

/** `"a", "b", or "c"` */
const listed = (words: readonly string[]): string =>
  `${words
    .slice(0, -1)
    .map((word) => `"${word}"`)
    .join(', ')}, or "${words.at(-1)}"`

const wrong = (line: number, problem: string): LlmError => invalidRequest(`(line ${line}): ${problem}`)
const unexpectedEnd = (): LlmError => invalidRequest('unexpected EOF')
