/** Parses and prints Modelfiles. Follows Ollama's `parser/parser.go` and `docs/modelfile.mdx`. */
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { ModelfileDefaults, ModelfileMessage } from './defaults.ts'
import { addParameter } from './modelfile-parameters.ts'

/** A parsed Modelfile. */
export interface Modelfile extends ModelfileDefaults {
  /** A model name, or the path of the weights and then the paths of projectors. */
  readonly from: readonly string[]
  /** Path of a LoRA adapter. */
  readonly adapter?: string
  /** Path of the draft model for speculative decoding. */
  readonly draft?: string
  /** Name of the renderer that Ollama uses for this model. Absent if the Modelfile names none. */
  readonly renderer?: string
  /** Name of the parser that Ollama uses for this model. Absent if the Modelfile names none. */
  readonly parser?: string
  /** Minimum Ollama version that the model needs, such as `0.14.0`. */
  readonly requires?: string
  /** Names of former Ollama parameters in the Modelfile. `parameters` does not contain them. */
  readonly ignored: readonly string[]
}

/** Throws `invalid_request`. The message contains the line number of an unknown command or role. */
export function parseModelfile(source: string | Uint8Array): Modelfile {
  const file: ModelfileDraft = { from: [], parameters: {}, license: [], messages: [], ignored: [] }
  for (const command of parseCommands(typeof source === 'string' ? source : decodeText(source)))
    commandHandlers[command.name](file, command)
  if (file.from.length === 0) throw invalidRequest('no FROM line')
  return file
}

/**
 * The printed text parses back to the same Modelfile, unless a line inside a value ends with `"""`. No
 * Modelfile can express such a value. A parameter name or role that is not a word could inject lines, so its
 * line is left out.
 */
export function printModelfile(file: Omit<Modelfile, 'ignored'>): string {
  const formatLine = (command: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${command} ${quote(value)}`]
  return [
    ...file.from.flatMap((from) => formatLine('FROM', from)),
    ...formatLine('ADAPTER', file.adapter),
    ...formatLine('DRAFT', file.draft),
    ...formatLine('TEMPLATE', file.template),
    ...formatLine('SYSTEM', file.system),
    ...formatLine('RENDERER', file.renderer),
    ...formatLine('PARSER', file.parser),
    ...formatLine('REQUIRES', file.requires),
    ...Object.entries(file.parameters)
      .filter(([name]) => isWord(name))
      .flatMap(([name, value]) =>
        [value].flat().flatMap((part) => formatLine(`PARAMETER ${name}`, formatValue(part))),
      ),
    ...file.license.flatMap((text) => formatLine('LICENSE', text)),
    ...file.messages
      .filter(({ role }) => isWord(role))
      .flatMap(({ role, content }) => formatLine(`MESSAGE ${role}`, content)),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

type ModelfileDraft = { -readonly [key in keyof Modelfile]: Modelfile[key] } & {
  from: string[]
  parameters: Record<string, unknown>
  license: string[]
  messages: ModelfileMessage[]
  ignored: string[]
}

interface ModelfileCommand {
  readonly name: CommandName
  readonly line: number
  /** Parameter name or message role. Empty for other commands. */
  readonly word: string
  readonly value: string
}

const commandHandlers = {
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
    if (!roles.includes(word)) throw lineError(line, `message role must be one of ${formatList(roles)}`)
    file.messages.push({ role: word, content: value })
  },
  requires: (file, { value }) => {
    if (!semver.test(value)) throw invalidRequest('requires must be a valid semver (e.g. 0.14.0)')
    file.requires = value.replace(/^v/, '')
  },
} satisfies Record<string, (file: ModelfileDraft, command: ModelfileCommand) => unknown>
type CommandName = keyof typeof commandHandlers

const roles: readonly string[] = ['system', 'user', 'assistant']
/** Versions as in Go's `semver` package. The `v`, the minor and the patch version are optional. */
const semver = /^v?\d+(\.\d+(\.\d+(-[\w.-]+)?(\+[\w.-]+)?)?)?$/

/** Yields one command per line. A quoted value can span several lines. */
function* parseCommands(text: string): Generator<ModelfileCommand> {
  // Lines have even indexes, and line breaks have odd indexes.
  const lines = text.split(/(\r\n|\n|\r)/)
  for (let at = 0; at < lines.length; at += 2) {
    const line = (lines[at] ?? '').replace(/^[ \t]+/, '')
    if (line === '' || line.startsWith('#')) continue
    const isLast = at === lines.length - 1
    const head = parseHead(line, at / 2 + 1, isLast)
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
      if (at >= lines.length) throw unexpectedEndError()
    }
    const value = [first, ...lines.slice(start + 1, at + 1)].join('').trimEnd()
    yield { ...head, value: value.slice(0, -quotes.length) }
  }
}

/** @param isLast whether the text is the last line of the Modelfile, without a line break after it */
function parseHead(
  text: string,
  line: number,
  isLast: boolean,
): Omit<ModelfileCommand, 'value'> & { rest: string } {
  const [, command = '', after = ''] = /^([a-z]*)(.*)$/is.exec(text) ?? []
  const name = command.toLowerCase()
  if (isLast && isCommand(name) && after === '') throw unexpectedEndError()
  if (!isCommand(name) || !/^[ \t]/.test(after))
    throw lineError(line, `command must be one of ${formatList(Object.keys(commandHandlers))}`)
  if (name !== 'parameter' && name !== 'message') return { name, line, word: '', rest: after.trimStart() }
  const [, word, rest] = /^[ \t]+(\w+)[ \t](.*)$/s.exec(after) ?? []
  if (word === undefined || rest === undefined) throw unexpectedEndError()
  return { name, line, word, rest: rest.trimStart() }
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(commandHandlers, name)

/** Decodes UTF-16 if the text begins with its byte order mark, else UTF-8. */
function decodeText(bytes: Uint8Array): string {
  const [first, second] = bytes
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
  return new TextDecoder(encoding).decode(bytes)
}

/** Adds quotes only if the value needs them. A value that contains quotes gets `"""`. */
function quote(value: string): string {
  if (value !== '' && !/[\r\n]|^"/.test(value) && value.trim() === value) return value
  const quotes = value.includes('"') ? '"""' : '"'
  return `${quotes}${value}${quotes}`
}

const isWord = (name: string): boolean => /^\w+$/.test(name)

const formatValue = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))

/** Formats words as `"a", "b", or "c"`. */
const formatList = (words: readonly string[]): string =>
  `${words
    .slice(0, -1)
    .map((word) => `"${word}"`)
    .join(', ')}, or "${words.at(-1)}"`

const lineError = (line: number, problem: string): LlmError => invalidRequest(`(line ${line}): ${problem}`)
const unexpectedEndError = (): LlmError => invalidRequest('unexpected EOF')
