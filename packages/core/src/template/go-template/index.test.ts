import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TemplateMessage } from '../template-message.ts'
import { GoTemplateError, parseGoTemplate } from './index.ts'
import { parseTree } from './parse.ts'
import { type ExecutionBounds, runTree } from './run.ts'
import { fromJson, GoMap, type GoValue } from './values.ts'

const now = new Date(2026, 10, 21)
const run = (source: string, data: object = {}, bounds: Partial<ExecutionBounds> = {}): string =>
  runTree(parseTree(source), fromJson(data) as GoMap, { now, ...bounds })
const problem = (action: () => unknown): string => {
  try {
    action()
  } catch (cause) {
    expect(cause).toBeInstanceOf(GoTemplateError)
    return (cause as Error).message
  }
  throw new Error('Expected the action to throw.')
}

describe('template language', () => {
  // The expected outputs and errors are those of Go.
  test.each([
    ['{{ .a }}', 'x'],
    ['a {{- /* b */ -}} c', 'ac'],
    [' {{- .a -}} ', 'x'],
    ['{{-3}}', '-3'],
    ['{{ .missing }}', '<no value>'],
    ['{{ .missing.more }}', undefined],
    ['{{ $m := .missing }}{{ $m.more }}', '<no value>'],
    ['{{ $ }}', 'map[a:x items:[1 2 3] n:1.5 o:map[b:true]]'],
    ['{{ if and .a (eq .a "x") }}yes{{ else }}no{{ end }}', 'yes'],
    ['{{ if .missing }}1{{ else if eq .n 1.5 }}2{{ else }}3{{ end }}', '2'],
    ['{{ with .o }}{{ .b }}{{ end }}', 'true'],
    ['{{ with .missing }}1{{ else with .a }}{{ . }}{{ end }}', 'x'],
    ['{{ range $i, $n := .items }}{{ $i }}={{ $n }} {{ end }}', '0=1 1=2 2=3 '],
    ['{{ range .missing }}1{{ else }}none{{ end }}', 'none'],
    ['{{ range .items }}{{ if eq . 2.0 }}{{ continue }}{{ end }}{{ . }}{{ end }}', '13'],
    ['{{ range .items }}{{ if eq . 2.0 }}{{ break }}{{ end }}{{ . }}{{ end }}', '1'],
    ['{{ range $k, $v := .o }}{{ $k }}:{{ $v }}{{ end }}', 'b:true'],
    ['{{ range 3 }}{{ . }}{{ end }}', '012'],
    ['{{ $x := 1 }}{{ range .items }}{{ $x = . }}{{ end }}{{ $x }}', '3'],
    ['{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}', '1'],
    ['{{ define "t" }}[{{ . }}]{{ end }}{{ template "t" .a }}', '[x]'],
    ['{{ block "t" .n }}<{{ . }}>{{ end }}', '<1.5>'],
    ['{{ .a | printf "%s-%s" "p" }}', 'p-x'],
    ['{{ (index .items 0) }}{{ (print .a).b }}', undefined],
    ['{{ len (slice .items 1) }}{{ len "é" }}{{ slice "abc" 1 2 }}', '22b'],
    ['{{ or .missing "d" }}{{ and 1 0 }}{{ not 1 }}', 'd0false'],
    ['{{ eq 1 2 1 }}{{ ne .a "y" }}{{ lt 1 2 }}{{ ge 1.5 .n }}', 'truetruetruetrue'],
    ['{{ eq .missing "x" }}{{ eq .missing .missing }}', 'falsetrue'],
    ['{{ print 1 2 "a" 3 }}{{ println "b" 1 }}', '1 2a3b 1\n'],
    [
      '{{ printf "%5d|%-4s|%04d|%q|%v|%.2f|%x" 42 "a" 7 "q" .items 1.005 255 }}',
      '   42|a   |0007|"q"|[1 2 3]|1.00|ff',
    ],
    ['{{ printf "%d" "x" }}{{ printf "%s" }}{{ printf "a" 1 }}', '%!d(string=x)%!s(MISSING)a%!(EXTRA int=1)'],
    ['{{ json . }}', '{"a":"x","items":[1,2,3],"n":1.5,"o":{"b":true}}'],
    [
      '{{ json "<&>" }}{{ html "<a>" }}{{ js "\'" }}{{ urlquery "a b&" }}',
      `"\\u003c\\u0026\\u003e"&lt;a&gt;\\'a+b%26`,
    ],
    ['{{ "a\\tb\\u00e9\\x41" }}{{ `raw\\n` }}{{ \'a\' }}{{ 0x1F }}{{ 1e3 }}', 'a\tbéAraw\\n97311000'],
    ['{{ currentDate }}{{ yesterdayDate }}', '2026-11-212026-11-20'],
    ['{{ "{{" }}{{ "}}" }}', '{{}}'],
    ['{{ 1e-5 }} {{ 1e21 }} {{ 100000.0 }}', '1e-05 1e+21 100000'],
    [
      '{{ 999999.5 }} {{ 1000000.0 }} {{ -123456789.5 }} {{ printf "%v %g" 1e6 1234567.0 }}',
      '999999.5 1e+06 -1.234567895e+08 1e+06 1.234567e+06',
    ],
  ])('%j renders %j', (source, expected) => {
    const data = { a: 'x', n: 1.5, items: [1, 2, 3], o: { b: true } }

    if (expected === undefined) expect(() => run(source, data)).toThrow(GoTemplateError)
    else expect(run(source, data)).toBe(expected)
  })

  test.each([
    ['{{ .Foo', 'template: :1: unclosed action'],
    ['{{ nofunc .Foo }}', 'template: :1: function "nofunc" not defined'],
    ['a\n{{ if .a }}', 'template: :2: unexpected EOF'],
    ['{{ end }}', 'template: :1: unexpected {{end}}'],
    ['{{ $x }}', 'template: :1: undefined variable "$x"'],
    ['{{ "a }}', 'template: :1: unterminated quoted string'],
    ['{{ /* }}', 'template: :1: unexpected "/" in command'],
    ['{{/* }}', 'template: :1: unclosed comment'],
    ['{{ break }}', 'template: :1: {{break}} outside {{range}}'],
    ['{{ if }}x{{ end }}', 'template: :1: missing value for if'],
    ['{{ .a | 1 }}', 'template: :1: non executable command in pipeline'],
    ['{{ (.a }}', 'template: :1: unclosed left paren'],
  ])('%j does not parse: %s', (source, expected) => {
    expect(problem(() => parseTree(source))).toContain(expected)
  })

  test.each([
    ['{{ .a.b }}', "can't evaluate field b in type string"],
    ['{{ .a 1 }}', "can't give argument to non-function .a"],
    ['{{ eq 1 "1" }}', 'incompatible types for comparison'],
    ['{{ lt . 1 }}', 'invalid type for comparison'],
    ['{{ index .items 9 }}', 'index out of range: 9'],
    ['{{ slice "abc" 2 1 }}', 'invalid slice index'],
    ['{{ len 3 }}', 'len of type int'],
    ['{{ len }}', 'wrong number of args for len: want 1 got 0'],
    ['{{ range .a }}{{ end }}', "range can't iterate over x"],
    ['{{ template "none" }}', 'template "none" not defined'],
    ['{{ call .a }}', 'non-function'],
    ['{{ nil }}', 'nil is not a command'],
  ])('%j fails to execute: %s', (source, expected) => {
    expect(problem(() => run(source, { a: 'x', items: [1] }))).toContain(expected)
  })

  test('keys of Object.prototype are missing values', () => {
    expect(run('{{ .constructor }}{{ .__proto__ }}{{ index . "toString" }}')).toBe(
      '<no value><no value><no value>',
    )
    expect(run('{{ index . "__proto__" }}', JSON.parse('{ "__proto__": "own" }'))).toBe('own')
  })
})

describe('bounds', () => {
  test('a template above the length limit is rejected', () => {
    expect(() => parseGoTemplate('x'.repeat(64 * 1024))).not.toThrow()
    expect(() => parseGoTemplate('x'.repeat(64 * 1024 + 1))).toThrow(
      new GoTemplateError('template: longer than 65536 characters'),
    )
  })

  test.each([
    ['nested loops', '{{ range 99999999 }}{{ range 99999999 }}{{ end }}{{ end }}', 'too many steps'],
    [
      'a template that includes itself',
      '{{ define "t" }}{{ template "t" }}{{ end }}{{ template "t" }}',
      'maximum template depth',
    ],
    [
      'a text that doubles repeatedly',
      '{{ $x := "ab" }}{{ range 99 }}{{ $x = print $x $x }}{{ end }}',
      'too long',
    ],
    ['repeated text', '{{ range 99999999 }}0123456789012345678901234567890123456789{{ end }}', 'too'],
    ['nested blocks', '{{ if 1 }}'.repeat(5_000) + '{{ end }}'.repeat(5_000), 'depth'],
    ['nested parentheses', `{{ ${'('.repeat(5_000)}1${')'.repeat(5_000)} }}`, 'depth'],
  ])('%s is stopped by a bound', (_, source, expected) => {
    expect(problem(() => run(source, {}, { maxSteps: 200_000, maxLength: 1_000_000 }))).toContain(expected)
  })

  test('parsing time is linear in the source', () => {
    const sources = [
      '{{',
      '{{ "',
      '{{ (',
      '{{/*',
      '{{- ',
      ' ',
      '{{ .a }}',
      '{{ if',
      '`',
      "'",
      '{{ $a := 1 }}',
    ]
    const startedAt = performance.now()

    for (const source of sources)
      try {
        parseTree(source.repeat(20_000))
      } catch (cause) {
        expect(cause).toBeInstanceOf(GoTemplateError)
      }

    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  const piece = fc.constantFrom(
    ...['{{', '}}', '{{- ', ' -}}', '{{ if .a }}', '{{ else }}', '{{ end }}', '{{ range $i, $m := .b }}'],
    ...['{{ define "t" }}', '{{ template "t" . }}', '{{ break }}', '.a', '.b', '$', '$i', '|', '(', ')', ' '],
    ...[
      'print',
      'printf',
      'index',
      'slice',
      'len',
      'eq',
      'json',
      'and',
      'lt',
      'html',
      'call',
      'range',
      'with',
    ],
    ...[
      '"%*d%s"',
      '"x"',
      '`',
      "'a'",
      '1',
      '-1',
      '1e400',
      '9999999999999999999',
      ':=',
      '=',
      ',',
      'nil',
      'true',
    ],
    ...['/*', '*/', '\n', '{{ .b | len | printf "%v" }}', '{{ slice .a 1 2 }}', '\uD800', '{{ $x := .a }}'],
  )
  const source = fc.oneof(
    fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
    fc.array(piece, { maxLength: 8 }).map((pieces) => `{{ ${pieces.join(' ')} }}`),
    fc.string({ unit: 'binary' }),
  )
  const data: fc.Arbitrary<unknown> = fc.object({
    key: fc.constantFrom('a', 'b', '__proto__', 'constructor'),
    maxDepth: 3,
  })

  test('any source terminates and throws only GoTemplateError', () => {
    fc.assert(
      fc.property(source, data, (written, values) => {
        try {
          expect(run(written, values as object, { maxSteps: 20_000, maxLength: 100_000 })).toBeTypeOf(
            'string',
          )
        } catch (cause) {
          if (!(cause instanceof GoTemplateError)) throw cause
        }
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('prompts', () => {
  const toMessage = (role: string, content: string): TemplateMessage => ({ role, content })
  // The expected prompts were recorded from Ollama 0.33.
  const chat =
    '{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n'
  const legacy =
    '{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n'
  const fim = '{{ if .Suffix }}<PRE>{{ .Prompt }}<SUF>{{ .Suffix }}<MID>{{ else }}{{ .Prompt }}{{ end }}'
  const thinks =
    '{{- range $i, $_ := .Messages }}<|im_start|>{{ .Role }}\n{{ if and .Thinking (eq .Role "assistant") }}<think>{{ .Thinking }}</think>\n{{ end }}{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ if .Think }}<think>\n{{ end }}'

  test('consecutive messages of the same role are joined, for any role', () => {
    const messages = [
      toMessage('system', 'S'),
      toMessage('user', 'a'),
      toMessage('user', 'a2'),
      toMessage('assistant', 'b'),
      toMessage('robot', 'c'),
    ]

    expect(parseGoTemplate(chat).renderChat(messages, [])).toBe(
      '<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na\n\na2<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>robot\nc<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('a single-turn template renders turn by turn and ends at the response', () => {
    const messages = [
      toMessage('system', 'S'),
      toMessage('user', 'a'),
      toMessage('assistant', 'b'),
      toMessage('user', 'c'),
    ]

    expect(parseGoTemplate(legacy).renderChat(messages, [])).toBe(
      '<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('fill-in-the-middle prompts have prefix and suffix', () => {
    expect(parseGoTemplate(fim).renderInfill('a', 'b')).toBe('<PRE>a<SUF>b<MID>')
    expect(parseGoTemplate(fim).renderChat([toMessage('user', 'a')], [])).toBe('a')
  })

  test('values print as Ollama prints them', () => {
    const source = `{{ range .Tools }}A={{ . }}
B={{ .Function }}
C={{ .Function.Parameters }}
D={{ .Function.Parameters.Properties }}
E={{ json .Function }}
F={{ json . }}{{ end }}
G={{ .Tools }}
H={{ json .Tools }}
{{ range .Messages }}{{ .Role }}:{{ .Content }}{{ range .ToolCalls }}[I={{ . }} J={{ .Function }} K={{ .Function.Name }} L={{ .Function.Arguments }} M={{ json .Function.Arguments }} N={{ .ID }}]{{ end }} O={{ .ToolName }} P={{ .ToolCallID }} Q={{ .Thinking }}
{{ end }}R={{ currentDate }} S={{ .Think }} T={{ .ThinkLevel }} U={{ .IsThinkSet }} V={{ len .Messages }}`
    const properties = {
      z: { type: 'string', description: 'zd', enum: ['b', 'a'], minLength: 3 },
      a: { type: ['integer', 'null'] },
      o: { type: 'object', properties: { q: { type: 'number' } } },
    }
    const tool = {
      name: 'f',
      description: 'd <b> & c',
      parameters: { type: 'object', required: ['z'], properties },
    }
    const values = { z: '<v>', a: 1, n: 1.5, big: 12345678901234567890n.toString() }
    const call = {
      id: 'x1',
      type: 'function' as const,
      function: { name: 'f', arguments: { ...values, big: Number(values.big) } },
    }
    const shownProperties =
      '{"a":{"type":["integer","null"]},"o":{"type":"object","properties":{"q":{"type":"number"}}},"z":{"type":"string","description":"zd","enum":["b","a"]}}'
    const shownFunction = `{"name":"f","description":"d \\u003cb\\u003e \\u0026 c","parameters":{"type":"object","required":["z"],"properties":${shownProperties}}}`
    const shownTool = `{"type":"function","function":${shownFunction}}`
    const shownValues = '{"a":1,"big":12345678901234567000,"n":1.5,"z":"\\u003cv\\u003e"}'

    expect(
      parseGoTemplate(source).renderChat(
        [
          toMessage('system', 'S'),
          toMessage('user', 'u'),
          { ...toMessage('assistant', ''), tool_calls: [call] },
          { ...toMessage('tool', 'res'), name: 'f', tool_call_id: 'x1' },
        ],
        [tool],
        {},
        { now },
      ),
    ).toBe(`A=${shownTool}
B={f d <b> & c {object <nil> <nil> [z] ${shownProperties}}}
C={object <nil> <nil> [z] ${shownProperties}}
D=${shownProperties}
E=${shownFunction}
F=${shownTool}
G=[${shownTool}]
H=[${shownTool}]
system:S O= P= Q=
user:u O= P= Q=
assistant:[I={x1 {0 f ${shownValues}}} J={0 f ${shownValues}} K=f L=${shownValues} M=${shownValues} N=x1] O= P= Q=
tool:res O=f P=x1 Q=
R=2026-11-21 S=false T= U=false V=4`)
  })

  test('toTypeScriptType formats parameter types', () => {
    const source =
      '{{ range .Tools }}{{ range $k, $p := .Function.Parameters.Properties }}{{ $k }}: {{ toTypeScriptType $p }}; {{ end }}{{ end }}{{ .Messages | len }}'
    const properties = {
      a: { type: 'integer' },
      b: { type: ['string', 'null'] },
      c: { anyOf: [{ type: 'array' }, { type: 'object' }] },
      d: {},
    }

    expect(parseGoTemplate(source).renderChat([], [{ name: 'f', parameters: { properties } }])).toBe(
      'a: number; b: string | null; c: any[] | Record<string, any>; d: any; 0',
    )
  })

  test.each([
    [{}, 'false  false'],
    [{ think: true }, 'true medium true'],
    [{ think: true, level: 'high' }, 'true high true'],
    [{ think: false, level: 'high' }, 'false  true'],
  ])('think settings %j render %j', (thinking, wanted) => {
    const source = '{{ .Think }} {{ .ThinkLevel }} {{ .IsThinkSet }}{{ range .Messages }}{{ end }}'

    expect(parseGoTemplate(source).renderChat([], [], thinking)).toBe(wanted)
  })

  test('features follow from the fields of a template', () => {
    const tools =
      '{{ range .Messages }}{{ if .ToolCalls }}{{ range .ToolCalls }}<call>\n{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}\n</call>{{ end }}{{ end }}{{ end }}{{ $.Tools }}'
    const before =
      '{{ range .Messages }}[TOOL_CALLS] [{{ range .ToolCalls }}{"name": "{{ .Function.Name }}"}{{ end }}]{{ end }}'

    expect(parseGoTemplate(chat).features).toEqual({
      tools: false,
      suffix: false,
      messages: true,
      response: false,
    })
    expect(parseGoTemplate(fim).features).toMatchObject({ suffix: true, messages: false })
    expect(parseGoTemplate(legacy).features).toMatchObject({ response: true })
    expect(parseGoTemplate(thinks).features.thinking).toEqual({ open: '<think>', close: '</think>' })
    expect(parseGoTemplate(tools).features).toMatchObject({
      tools: true,
      calls: { open: '<call>', close: '</call>' },
    })
    expect(parseGoTemplate(before).features.calls).toEqual({ open: '[TOOL_CALLS]', close: '' })
  })

  test('a missing key of a nested map prints as <no value>', () => {
    const empty: GoValue = new GoMap([])

    expect(runTree(parseTree('{{ .a.b }}'), new GoMap([['a', empty]]))).toBe('<no value>')
  })
})
