import { describe, expect, test } from 'vitest'
import { schemaToGrammar } from '../../../../grammar/schema/json-schema.ts'
import { larkToPattern } from './lark-pattern.ts'

const matches = (grammar: string, text: string): boolean =>
  new RegExp(`^(?:${larkToPattern(grammar)})$`, 'u').test(text)

/** The shape of the grammar that Codex sends for patches. */
const patch = `
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk
    | update_hunk   // on the next line
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`

describe('a Lark grammar', () => {
  test.each([
    ['*** Begin Patch\n*** Add File: a.txt\n+Hello\n+\n*** End Patch\n', true],
    [
      '*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ def a():\n-x\n+y\n z\n*** End of File\n*** End Patch',
      true,
    ],
    ['*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch', true],
    ['*** Begin Patch\n*** End Patch', false],
    ['*** Begin Patch\n*** Add File: a\nHello\n*** End Patch', false],
    ['{"patch":"*** Begin Patch"}', false],
  ])('of patches matches %j: %s', (text, isMatch) => {
    expect(matches(patch, text)).toBe(isMatch)
  })

  test('of patches is within what the engine can compile', () => {
    const schema = {
      type: 'object',
      properties: { input: { type: 'string', pattern: `^(?:${larkToPattern(patch)})$` } },
      required: ['input'],
    }

    expect(schemaToGrammar(schema)).toContain('[B] [e] [g] [i] [n]')
  })

  test.each([
    ['start: "a" ~ 2..3', ['aa', 'aaa'], ['a', 'aaaa']],
    ['start: "a"~2', ['aa'], ['a', 'aaa']],
    ['start: ["a"] ("b" | "c")*', ['', 'a', 'abcb'], ['ba']],
    ['start: "Select"i', ['SELECT', 'select'], ['selec']],
    ['start: "a".."f"+', ['abf'], ['g', '']],
    ['start: INT "." _tail\n_tail: DIGIT\n%import common (INT, DIGIT)', ['12.3'], ['12.34', '123']],
    ['?start.2: NUM\nNUM.3: /[0-9]+/\n%import common.LF -> END', ['12'], ['a']],
    ['start: "a\\n\\x41\\"[" /\\/+/', ['a\nA"[//'], ['a']],
    ['start: "a-b" "c".."c"', ['a-bc'], ['a-b']],
  ])('%j matches %j, and not %j', (grammar, yes, no) => {
    expect(yes.filter((text) => !matches(grammar, text))).toEqual([])
    expect(no.filter((text) => matches(grammar, text))).toEqual([])
  })

  test.each([
    ['rule: "a"', "it has no rule 'start'"],
    ['start: "(" start ")" | "a"', "the rule 'start' contains itself"],
    ['start: a\na: b\nb: [a]', "the rule 'a' contains itself"],
    ['start: a', "it does not define 'a'"],
    ['start: "a"\n%ignore " "', "line 2 has '%ignore'"],
    ['start: A\n%import common.UNKNOWN -> A', "it does not define 'common.UNKNOWN'"],
    ['start: A\n%import python.A', "another module than 'common'"],
    ['start: /a/i', 'has flags'],
    ['start: "a" ^', 'line 1 has an unexpected character'],
    ['start: ("a"', "no ')'"],
    ['start: "a" ]', 'line 1 has something unexpected'],
    ['start: _list{"a"}\n_list{x}: x', 'a template'],
    ['start: "a"\nstart: "b"', "defines 'start' again"],
    [`start: ${'('.repeat(200)}"a"${')'.repeat(200)}`, 'nested more than 100 levels'],
    [
      `start: r0\n${Array.from({ length: 30 }, (_, n) => `r${n}: r${n + 1} r${n + 1}\n`).join('')}r30: "a"`,
      'too long when each is written out',
    ],
  ])('%j cannot be converted', (grammar, message) => {
    expect(() => larkToPattern(grammar)).toThrow(message)
  })
})
