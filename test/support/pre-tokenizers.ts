/**
 * The pre-tokenizers of the installed llama.cpp, read from its source code. node-llama-cpp contains the source as a
 * git bundle.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

export interface PreTokenizer {
  /** All names that mean the same in `tokenizer.ggml.pre`. */
  readonly names: readonly string[]
  /** They split the text one after the other. */
  readonly expressions: readonly SplitExpression[]
}

interface SplitExpression {
  readonly pattern: string
  /** Whether llama.cpp has its own code for the pattern, and does not use `std::regex`. */
  readonly isHandWritten: boolean
}

const cString = /"(?:[^"\\]|\\.)*"/

export async function readPreTokenizers(): Promise<readonly PreTokenizer[]> {
  const [vocabulary = '', unicode = ''] = await readSources('src/llama-vocab.cpp', 'src/unicode.cpp')
  const handWritten = new Set(
    Array.from(unicode.matchAll(new RegExp(`regex_expr == (${cString.source})`, 'g')), ([, text = '']) =>
      JSON.parse(text),
    ),
  )
  const patterns = patternsByType(vocabulary)
  return Array.from(namesByType(vocabulary), ([type, names]) => ({
    names,
    expressions: (patterns.get(type) ?? patterns.get('DEFAULT') ?? []).map((pattern) => ({
      pattern,
      isHandWritten: handWritten.has(pattern),
    })),
  }))
}

async function readSources(...paths: readonly string[]): Promise<readonly string[]> {
  const bundle = join(modules, 'node-llama-cpp', 'llama', 'gitRelease.bundle')
  const folder = await mkdtemp(join(tmpdir(), 'source-'))
  try {
    await run('git', ['clone', '--quiet', '--bare', bundle, folder])
    const read = (path: string) =>
      run('git', ['-C', folder, 'show', `HEAD:${path}`], { maxBuffer: 16 * 1024 * 1024 })
    return (await Promise.all(paths.map(read))).map(({ stdout }) => stdout)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Reads the `if` chain that maps names to types. */
function namesByType(source: string): ReadonlyMap<string, readonly string[]> {
  const chain = source.slice(source.indexOf('if (tokenizer_pre.empty())'))
  const found = new Map<string, readonly string[]>()
  let names: string[] = []
  for (const [, name, type] of chain.matchAll(
    /tokenizer_pre == "([^"]+)"|pre_type = LLAMA_VOCAB_PRE_TYPE_(\w+);/g,
  ))
    if (name !== undefined) names.push(name)
    else if (type !== undefined) {
      found.set(type, [...(found.get(type) ?? []), ...names])
      names = []
    }
  return found
}

/** Reads the `switch` that maps types to regular expressions. */
function patternsByType(source: string): ReadonlyMap<string, readonly string[]> {
  const start = source.indexOf('struct llm_tokenizer_bpe :')
  const found = new Map<string, readonly string[]>()
  let types: string[] = []
  let patterns: string[] = []
  for (const line of source.slice(start, source.indexOf('\n};', start)).split('\n')) {
    const type = /^\s*(?:case LLAMA_VOCAB_PRE_TYPE_(\w+)|default):/.exec(line)
    const [literal] = new RegExp(`^\\s*${cString.source}`).exec(line) ?? []
    if (type) types.push(type[1] ?? 'DEFAULT')
    if (literal !== undefined) patterns.push(JSON.parse(literal))
    if (/^\s*break;/.test(line)) {
      for (const one of types) found.set(one, patterns)
      ;[types, patterns] = [[], []]
    }
  }
  return found
}
