import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Modelfile, parseModelfile, printModelfile } from './modelfile.ts'
import { ModelParameters } from './parameters.ts'

const nothing: Modelfile = { from: ['tiny'], parameters: {}, license: [], messages: [], ignored: [] }
const parsed = (text: string): Partial<Modelfile> => parseModelfile(`FROM tiny\n${text}`)

describe('commands', () => {
  test('are case-insensitive', () => {
    const text = [
      'from tiny',
      'FROM ./mmproj.gguf',
      'Adapter ./lora.gguf',
      '\t TEMPLATE\t{{ .Prompt }}',
      'SYSTEM You are "Bob".  ',
      'license MIT',
      'LICENSE Apache-2.0',
      'RENDERER qwen3',
      'PARSER qwen3',
      'REQUIRES v0.14.0',
      'MESSAGE user hi',
      'MESSAGE assistant Hello: <b>!',
      'DRAFT ./small.gguf',
    ].join('\n')

    expect(parseModelfile(text)).toEqual({
      from: ['tiny', './mmproj.gguf'],
      adapter: './lora.gguf',
      draft: './small.gguf',
      template: '{{ .Prompt }}',
      system: 'You are "Bob".',
      license: ['MIT', 'Apache-2.0'],
      renderer: 'qwen3',
      parser: 'qwen3',
      requires: '0.14.0',
      parameters: {},
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'Hello: <b>!' },
      ],
      ignored: [],
    })
  })

  test('the last of a repeated command wins', () => {
    expect(parsed('SYSTEM one\nSYSTEM two')).toMatchObject({ system: 'two' })
  })

  test('only a # at the start of a line is a comment', () => {
    expect(parsed('# SYSTEM one\n  # two\nSYSTEM three # four')).toMatchObject({ system: 'three # four' })
  })

  test.each([
    ['SYNTAX error', '(line 3): command must be one of "from", "license", "template"'],
    ['FROM', 'unexpected EOF'],
    ['FROM\n', '(line 3): command must be one of'],
    ['5YSTEM x', '(line 3): command must be one of'],
    ['SYSTEM=x', '(line 3): command must be one of'],
    ['constructor x', '(line 3): command must be one of'],
    [
      "MESSAGE badguy I'm a bad guy!",
      '(line 3): message role must be one of "system", "user", or "assistant"',
    ],
    ['MESSAGE User hi', '(line 3): message role must be one of'],
    ['MESSAGE system', 'unexpected EOF'],
    ['MESSAGE system\nSYSTEM x', 'unexpected EOF'],
    ['PARAMETER temperature', 'unexpected EOF'],
    ['PARAMETER  temperature\n', 'unexpected EOF'],
    ['PARAMETER top-p 1', 'unexpected EOF'],
    ['REQUIRES new', 'requires must be a valid semver (e.g. 0.14.0)'],
  ])('%j is rejected', (text, problem) => {
    expect(() => parseModelfile(`FROM tiny\r\n\r\n${text}`)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(problem) }),
    )
  })

  test('the error lists all commands', () => {
    expect(() => parsed('MODEL x')).toThrow(
      '(line 2): command must be one of "from", "license", "template", "system", "adapter", "draft", "renderer", "parser", "parameter", "message", or "requires"',
    )
  })

  test.each(['', '# nothing\n', 'SYSTEM x'])('a Modelfile without FROM is rejected: %j', (text) => {
    expect(() => parseModelfile(text)).toThrow('no FROM line')
  })
})

describe('values', () => {
  test.each([
    ['bare', '  two words \t', 'two words'],
    ['quoted', '" two words "', ' two words '],
    ['over several lines', '"one\n\n two"', 'one\n\n two'],
    ['in three quotes', '"""one\n"two"\n"""', 'one\n"two"\n'],
    ['with quotes within', '"a" and "b"', 'a" and "b'],
    ['with quotes that close only at the end of a line', '"""a""" b\nc"""', 'a""" b\nc'],
    ['quoted, with trailing blanks', '"a"  \t', 'a'],
    ['in single quotes, which are part of the value', "'a'", "'a'"],
    ['with a backslash, which escapes nothing', '"a\\nb"', 'a\\nb'],
    ['empty', '""', ''],
    ['empty in three quotes', '""""""', ''],
    ['with a carriage return in quotes', '"a\r\nb"', 'a\r\nb'],
    ['with invisible characters', 'a\u200Db\u00A0c', 'a\u200Db\u00A0c'],
  ])('%s', (_, text, value) => {
    expect(parsed(`SYSTEM ${text}`)).toMatchObject({ system: value })
    expect(parsed(`SYSTEM ${text}\nLICENSE MIT`)).toMatchObject({ system: value, license: ['MIT'] })
  })

  test.each(['"one', '"""one', '"""one"', '"', '"""', '"""""'])('%s is not closed', (text) => {
    expect(() => parsed(`SYSTEM ${text}\nLICENSE MIT`)).toThrow('unexpected EOF')
  })

  test('a carriage return ends a line with or without a line feed', () => {
    expect(parsed('SYSTEM one\rLICENSE two\r\nLICENSE three')).toMatchObject({
      system: 'one',
      license: ['two', 'three'],
    })
  })

  test('a value of many lines is parsed fast', () => {
    const text = '"a\n'.repeat(200_000)

    expect(parsed(`SYSTEM """${text}"""`)).toMatchObject({ system: text })
  })
})

describe('encodings', () => {
  const text = 'FROM tiny\nSYSTEM é🙂'
  const utf16 = Buffer.from(`\uFEFF${text}`, 'utf16le')

  test.each([
    ['UTF-8', Buffer.from(text)],
    ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${text}`)],
    ['UTF-16, little-endian', utf16],
    ['UTF-16, big-endian', Buffer.from(utf16).swap16()],
  ])('%s', (_, bytes) => {
    expect(parseModelfile(bytes)).toMatchObject({ from: ['tiny'], system: 'é🙂' })
  })
})

describe('parameters', () => {
  test('are converted to their types', () => {
    const text = [
      'temperature 0.7',
      'num_ctx 4096',
      'seed -1',
      'use_mmap F',
      'stop <a>',
      'stop "\n\n"',
      'top_k 5',
      'top_k 6',
    ]

    expect(parsed(text.map((line) => `PARAMETER ${line}\n`).join(''))).toMatchObject({
      parameters: {
        temperature: 0.7,
        num_ctx: 4096,
        seed: -1,
        use_mmap: false,
        stop: ['<a>', '\n\n'],
        top_k: 6,
      },
    })
  })

  test.each([
    ['num_ctx 1.5', 'invalid int value [1.5]'],
    ['num_ctx ""', 'invalid int value []'],
    ['num_ctx 99999999999999999999', 'invalid int value [99999999999999999999]'],
    ['temperature hot', 'invalid float value [hot]'],
    ['temperature Infinity', 'invalid float value [Infinity]'],
    ['use_mmap yes', 'invalid bool value [yes]'],
    ['use_mmap constructor', 'invalid bool value [constructor]'],
    ['bogus 5', "unknown parameter 'bogus'"],
    ['__proto__ 5', "unknown parameter '__proto__'"],
  ])('%s is rejected', (text, problem) => {
    expect(() => parsed(`PARAMETER ${text}`)).toThrow(problem)
  })

  test.each(Object.keys(ModelParameters.shape))('%s is a known Modelfile parameter', (name) => {
    expect(Object.keys(parsed(`PARAMETER ${name} 1`).parameters ?? {})).toEqual([name])
  })

  test('that were removed from Ollama are listed in ignored', () => {
    expect(parsed('PARAMETER mirostat 1')).toMatchObject({ parameters: {}, ignored: ['mirostat'] })
  })
})

describe('printing', () => {
  test('quotes values where needed', () => {
    const text = printModelfile({
      ...nothing,
      template: '{{ .Prompt }}\n',
      system: 'You are "Bob".',
      parameters: { temperature: 0, stop: ['\n\n', '<|im_end|>'], num_ctx: 1_048_576 },
      license: [' MIT', 'line\n"two"'],
      messages: [{ role: 'user', content: '"hi"' }],
    })

    expect(text).toBe(
      [
        'FROM tiny',
        'TEMPLATE "{{ .Prompt }}',
        '"',
        'SYSTEM You are "Bob".',
        'PARAMETER temperature 0',
        'PARAMETER stop "',
        '',
        '"',
        'PARAMETER stop <|im_end|>',
        'PARAMETER num_ctx 1048576',
        'LICENSE " MIT"',
        'LICENSE """line',
        '"two""""',
        'MESSAGE user """"hi""""',
        '',
      ].join('\n'),
    )
  })

  test('leaves out names that could inject a line', () => {
    const text = printModelfile({
      ...nothing,
      parameters: { 'x\nSYSTEM y': 1, top_k: 5 },
      messages: [{ role: 'x\nSYSTEM y', content: 'hi' }],
    })

    expect(text).toBe('FROM tiny\nPARAMETER top_k 5\n')
  })

  test('a printed Modelfile parses back to the same value', () => {
    const value = fc
      .oneof(
        fc.string({ unit: 'binary' }),
        fc
          .array(fc.constantFrom('"', '\n', '\r', ' ', '\t', '#', 'a', 'FROM b'))
          .map((parts) => parts.join('')),
      )
      .filter((text) => !/"""[^\S\r\n]*[\r\n]/.test(text))
    const number = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((one) => !Object.is(one, -0))
    const file: fc.Arbitrary<Modelfile> = fc.record(
      {
        from: fc.array(value, { minLength: 1, maxLength: 3 }),
        adapter: value,
        draft: value,
        template: value,
        system: value,
        renderer: value,
        parser: value,
        requires: fc.constantFrom('0.14.0', '1', '2.0', '1.2.3-rc1+x'),
        parameters: fc.record(
          {
            temperature: number,
            num_ctx: fc.maxSafeInteger(),
            use_mmap: fc.boolean(),
            stop: fc.array(value, { minLength: 1 }),
          },
          { requiredKeys: [] },
        ),
        license: fc.array(value),
        messages: fc.array(
          fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), content: value }),
        ),
        ignored: fc.constant([]),
      },
      { requiredKeys: ['from', 'parameters', 'license', 'messages', 'ignored'] },
    )

    fc.assert(
      fc.property(file, (one) => {
        expect(parseModelfile(printModelfile(one))).toEqual(one)
      }),
      { numRuns: 2_000 },
    )
  })

  test('any text parses or is rejected', () => {
    const words = fc.constantFrom(
      'FROM',
      'MESSAGE',
      'user',
      'PARAMETER',
      'stop',
      '"',
      '"""',
      '\n',
      '\r',
      ' ',
      '#',
      '\\',
    )

    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string())), (parts) => {
        try {
          parseModelfile(parts.join(''))
        } catch (error) {
          expect(error).toMatchObject({ name: 'LlmError', code: 'invalid_request' })
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
