/** Long words with every pre-tokenizer of the engine: each is tokenized or rejected, and no model process ends. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { RegexPreTokenizer } from '../../packages/core/src/engine/local/model-process/prompt/regex-pre-tokenizer.ts'
import { forgedPreTokenizer } from '../support/forgeries.ts'
import { type PreTokenizer, readPreTokenizers } from '../support/pre-tokenizers.ts'
import { childrenOf, hasProc } from '../support/processes.ts'
import { randomOf } from '../support/random.ts'
import { times } from '../support/scale.ts'

const preTokenizers = await readPreTokenizers()

/** Each is repeated to 30,000 characters. */
const parts = [
  ..."aAéб漢アー한ก𝐀!.\u2014😀7๗½_\\|(' \n\t\u3000\u00A0\u0085\u200B\u0000\uD835\uA7CB",
  ..."Ab aB ア・ ก๗ ကာ e\u0301 漢A 々、 「漢 !\u0301 's !\u{10FFFE} a1 1. <sentinel:7 <|im_end|>".split(' '),
  ...[' \n', '\r\n', 'a ', 'word ', 'a\n', '1 ', '. '],
]
const length = 30_000

/** Parts that no process can tokenize. */
const expectedRejections: Readonly<Record<string, RegExp>> = {
  // With the vocabulary of this model, llama.cpp crashes on a space beside other white space.
  whitespace: /^( | \n)$/,
  // Its time grows with the square of the number of digits.
  superbpe: /^[7]$/,
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pre-'))
})

afterAll(async () => {
  tokenizer?.kill()
  await rm(folder, { recursive: true })
})

describe("the rules for std::regex agree with llama.cpp's source", () => {
  const open = (pre: string): RegexPreTokenizer | undefined => RegexPreTokenizer.of({ model: 'gpt2', pre })

  test('the source has all pre-tokenizers, each with regular expressions', () => {
    const names = preTokenizers.flatMap((one) => one.names)

    expect(names).toEqual(expect.arrayContaining(['default', 'gpt-4o', 'tekken', 'llama-bpe', 'qwen2']))
    expect(names.length).toBeGreaterThan(80)
    expect(new Set(names).size).toBe(names.length)
    expect(preTokenizers.filter(({ expressions }) => expressions.length === 0)).toEqual([])
  })

  test('only those that never use std::regex for more than one character count as safe', () => {
    const isSafe = ({ expressions }: PreTokenizer): boolean =>
      expressions.every(({ pattern, isHandWritten }) => isHandWritten || pattern === '\\p{N}')
    const safe = preTokenizers.flatMap((one) => (isSafe(one) ? one.names : []))

    expect(preTokenizers.flatMap(({ names }) => names).filter((name) => !open(name))).toEqual(safe)
  })

  const withRegex = preTokenizers.flatMap(({ names, expressions }) => {
    const [name = ''] = names
    return open(name) ? [{ name, expressions }] : []
  })

  test.each(withRegex)('$name matches no long word in a text without long words', ({ name, expressions }) => {
    const random = randomOf(7)
    const preTokenizer = open(name)
    let harmless = 0
    for (let round = 0; round < times(3_000, 100); round++) {
      const text = randomText(random)
      if (preTokenizer?.measureLongWord(text) !== 0) continue
      harmless++
      const longest = longestMatch(text, expressions)
      expect(longest.length, JSON.stringify(longest)).toBeLessThanOrEqual(1_030)
    }
    expect(harmless).toBeGreaterThan(10)
  })
})

const characters = [...'aAé漢ア々ー한กб1٣7 \n\t\u3000!.,/\'"(|{<_-。、「😀\u0301\0']

/** A text of 2,500 characters, from runs of one to three different characters. */
function randomText(random: () => number): string {
  const pick = (max: number): number => Math.floor(random() * max)
  let text = ''
  while (text.length < 2_500) {
    const kinds = Array.from({ length: 1 + pick(3) }, () => characters[pick(characters.length)])
    const length = pick(random() < 0.5 ? 20 : 500)
    for (let at = 0; at < length; at++) text += kinds[pick(kinds.length)]
    if (random() < 0.5) text += ' '
  }
  return text
}

/** Splits a text as llama.cpp does. Returns the longest match of the expressions that use `std::regex`. */
function longestMatch(text: string, expressions: PreTokenizer['expressions']): string {
  let longest = ''
  let words: readonly string[] = [text]
  for (const { pattern, isHandWritten } of expressions) {
    const expression = toJavaScript(pattern)
    words = words.flatMap((word) => {
      const parts: string[] = []
      let end = 0
      for (const { 0: match, index } of word.matchAll(expression)) {
        if (!isHandWritten && match.length > longest.length) longest = match
        parts.push(word.slice(end, index), match)
        end = index + match.length
      }
      return [...parts, word.slice(end)].filter((part) => part !== '')
    })
  }
  return longest
}

/** llama.cpp does not tell apart the cases of letters. Digits are grouped by code of its own. */
const toJavaScript = (pattern: string): RegExp =>
  new RegExp(pattern.replace(/\\p\{L.\}/g, '\\p{L}').replace('\\p{AFMoE_digits}', '\\p{N}{1,3}'), 'gu')

/** Ends with a text that it cannot take. Then the next text starts another one. */
let tokenizer: ChildProcess | undefined

/** Tokenizes in one process for all vocabularies, which runs the code of a model process. */
async function tokenizeOrReject(modelPath: string, text: string): Promise<'tokens' | 'rejected'> {
  tokenizer ??= fork(fileURLToPath(new URL('./tokenize.mjs', import.meta.url)))
  const settled = new AbortController()
  const { signal } = settled
  const ended = Promise.race([once(tokenizer, 'message', { signal }), once(tokenizer, 'exit', { signal })])
  tokenizer.send({ modelPath, text })
  const [result, cause] = await ended.finally(() => settled.abort())
  if (typeof result !== 'object' || result === null) {
    tokenizer = undefined
    throw new Error(`The process ended (${cause ?? result}) after ${JSON.stringify(text.slice(0, 20))}`)
  }
  if (result.error) {
    expect(result.error).toMatchObject({ name: 'LlmError', code: 'invalid_request' })
    return 'rejected'
  }
  return 'tokens'
}

describe('no long word ends a model process', () => {
  const isThorough = inject('isThorough')
  const names = isThorough
    ? preTokenizers.flatMap((one) => one.names)
    : distinctNames().filter((_, index) => index % 3 === 0)
  /** A sample has letters, and an eighth of the other parts for each name. */
  const partsFor = (name: string): readonly string[] => {
    const place = preTokenizers.findIndex((one) => one.names.includes(name))
    return parts.filter((part, index) => isThorough || part === 'a' || index % 8 === place % 8)
  }

  test.each(names)(
    'with the pre-tokenizer %s',
    async (name) => {
      const file = join(folder, `${name}.gguf`)
      await writeFile(file, forgedPreTokenizer(name))
      const outcomes = new Map<string, 'tokens' | 'rejected'>()

      for (const part of partsFor(name))
        outcomes.set(part, await tokenizeOrReject(file, part.repeat(length / part.length)))

      const rejected = [...outcomes].flatMap(([part, outcome]) => (outcome === 'rejected' ? part : []))
      expect(rejected).toEqual(partsFor(name).filter((part) => expectedRejections[name]?.test(part)))
      endIsolated()
      await rm(file)
    },
    60_000,
  )
})

/** One name for each list of expressions: llama.cpp splits texts in the same way for all its names. */
function distinctNames(): readonly string[] {
  const byExpressions = new Map<string, string>()
  for (const { names, expressions } of preTokenizers) {
    const key = expressions.map(({ pattern }) => pattern).join('\n')
    if (names[0] !== undefined && !byExpressions.has(key)) byExpressions.set(key, names[0])
  }
  return [...byExpressions.values()]
}

/** Ends the child process that tokenized the long words of one vocabulary. Left alone, it would idle for a minute. */
function endIsolated(): void {
  if (hasProc) for (const id of childrenOf(tokenizer?.pid ?? 0)) process.kill(id, 'SIGKILL')
}
