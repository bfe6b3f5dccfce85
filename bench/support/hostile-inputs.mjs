// Inputs that must be rejected: templates, schemas and grammars that would keep a server busy without end.

const times = (count, make) => Array.from({ length: count }, (_, index) => make(index))

const loop = '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}'
const doubled =
  '{% set ns = namespace(t="a") %}{% for i in range(40) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}{{ ns.t }}'
/** Only native code has `pop` for lists, so this makes the native renderer run the template. */
const popped = '{{ [1].pop() }}'

/** Hostile template code, by the message that triggers it. */
const endings = {
  'an endless loop': loop,
  'a range of three million': '{% for i in range(3000000) %}{{ i }} {% endfor %}',
  'an endless loop in native code': popped + loop,
  'a text doubled 40 times in native code': popped + doubled,
}

/** Other messages get a normal answer. */
const template = [
  '{% set text = messages[0].content %}',
  ...Object.entries(endings).map(([text, ending]) => `{% if text == "${text}" %}${ending}{% endif %}`),
  '{{ text }}',
].join('')

/**
 * Replaces the template of a model file in place. The file's template must not be shorter, because nothing
 * moves.
 */
export function withHostileTemplate(file) {
  const key = 'tokenizer.chat_template'
  // GGUF stores the key, its type, the length, and the text.
  const at = file.indexOf(key) + key.length + 4
  const length = Number(file.readBigUInt64LE(at))
  const comment = `{#${' '.repeat(length - template.length - 4)}#}`
  const changed = Buffer.from(file)
  changed.write(template + comment, at + 8)
  return changed
}

const properties = Object.fromEntries(times(10_000, (index) => [`p${index}`, { type: 'string' }]))
/** Each choice has two branches that both lead to the next choice: 2^100 paths. */
const choices = Object.fromEntries(
  times(101, (index) => {
    const either = (name) => ({ required: [`${name}${index}`], $ref: `#/$defs/c${index + 1}` })
    return [`c${index}`, index < 100 ? { anyOf: [either('a'), either('b')] } : { type: 'object' }]
  }),
)
const schemas = {
  '10,000 properties': { type: 'object', properties },
  'a pattern with a huge automaton': { type: 'string', pattern: '^(a|b)*a(a|b){200}$' },
  'a schema that refers to itself': { $ref: '#' },
  '100 nested choices': { $ref: '#/$defs/c0', $defs: choices },
}

const grammars = {
  '9,000 nested groups': `root ::= ${'('.repeat(9_000)}"a"${')'.repeat(9_000)}`,
  '20,000 alternatives': `root ::= ${times(20_000, (index) => `"${index}"`).join(' | ')}`,
  'a billion repetitions': 'root ::= ((("a"){1000}){1000}){1000}',
  'a chain of 9,000 rules': [
    'root ::= r0',
    ...times(9_000, (index) => `r${index} ::= r${index + 1}`),
    'r9000 ::= "a"',
  ].join('\n'),
  '60 optional parts': `root ::= ${'"a"? '.repeat(60)}`,
}

/** Fields of hostile requests, by kind and by name. */
export const hostileInputs = {
  template: toFields(endings, (text) => ({ messages: [{ role: 'user', content: text }] })),
  schema: toFields(schemas, (name) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'hostile', schema: schemas[name] } },
  })),
  grammar: toFields(grammars, (name) => ({ grammar: grammars[name] })),
}

function toFields(inputs, toField) {
  return Object.fromEntries(Object.keys(inputs).map((name) => [name, toField(name)]))
}
