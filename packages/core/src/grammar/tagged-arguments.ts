/** Grammar of arguments with one tag per parameter, in the order of the schema. A string is any text up to its closing tag. */
import { LlmError } from '../errors.ts'
import { isRecord } from '../util/is-record.ts'
import type { CallableTool, ParameterTags } from './constraint.ts'
import { choice, type Expression, optional, sequence, text } from './gbnf/expressions.ts'
import type { Grammar } from './gbnf/grammar.ts'
import { buildTextUpTo } from './gbnf/text-up-to.ts'
import { addSchema } from './schema/json-schema.ts'

const blank = optional(text('\n'))

/** Line breaks are optional. */
const buildTag = (tag: string): Expression =>
  sequence(...tag.split(/(\n)/).map((part) => (part === '\n' ? blank : text(part))))

/** @param close the rest of the call after its arguments */
export function buildTaggedArguments(
  { parameters }: CallableTool,
  tags: ParameterTags,
  close: Expression,
  grammar: Grammar,
): Expression {
  const schema = isRecord(parameters) ? parameters : {}
  if (!isRecord(schema.properties)) return buildAnyArguments(tags, close, grammar)
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : []
  const definitions = Object.fromEntries(
    ['$defs', 'definitions'].flatMap((key) => (key in schema ? [[key, schema[key]]] : [])),
  )
  let rest = close
  for (const [name, member] of Object.entries(schema.properties).reverse()) {
    const following = grammar.define('parameters', rest)
    const value = buildValue(isRecord(member) ? { ...definitions, ...member } : {}, tags, following, grammar)
    const parameter = sequence(text(tags.open + name), value)
    rest = required.includes(name) ? parameter : choice(parameter, following)
  }
  return rest
}

/** Any parameters, for a tool that does not declare them. */
function buildAnyArguments(tags: ParameterTags, close: Expression, grammar: Grammar): Expression {
  const { rule, setBody } = grammar.reserve('parameters')
  const parameter = buildTextUpTo(grammar, tags.valueEnd, () => sequence(blank, rule), false)
  setBody(choice(close, sequence(text(tags.open), parameter)))
  return rule
}

function buildValue(
  schema: Readonly<Record<string, unknown>>,
  { keyEnds: [beforeText, beforeJson], valueEnd }: ParameterTags,
  following: Expression,
  grammar: Grammar,
): Expression {
  const end = sequence(blank, text(valueEnd), blank, following)
  const words = listWords(schema)
  if (words) return sequence(buildTag(beforeText), blank, choice(...words.map(text)), end)
  const types = listTypes(schema)
  const canBeText = types === undefined || types.includes('string')
  const json =
    canBeText && (types?.length === 1 || beforeJson === beforeText) ? undefined : buildJson(schema, grammar)
  const options = [
    ...(json ? [sequence(buildTag(beforeJson), blank, json, end)] : []),
    ...(canBeText || !json
      ? [
          sequence(
            buildTag(beforeText),
            buildTextUpTo(grammar, valueEnd, () => sequence(blank, following), false),
          ),
        ]
      : []),
  ]
  return choice(...options)
}

/** Returns `undefined` if the schema has an unsupported keyword. */
function buildJson(schema: object, grammar: Grammar): Expression | undefined {
  try {
    return addSchema(grammar, schema)
  } catch (error) {
    if (error instanceof LlmError && error.details.issue === 'unsupported') return undefined
    throw error
  }
}

/** Lists the values of an enumeration of strings. */
function listWords({
  enum: values,
  const: value,
}: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  const all: unknown = values ?? (value === undefined ? undefined : [value])
  const isWords = Array.isArray(all) && all.length > 0 && all.every((one) => typeof one === 'string')
  return isWords ? all : undefined
}

/** Returns `undefined` if the schema does not list its types. */
function listTypes({ type, anyOf }: Readonly<Record<string, unknown>>): readonly unknown[] | undefined {
  const options: readonly unknown[] = Array.isArray(anyOf) ? anyOf : []
  const types = [type ?? options.map((option) => (isRecord(option) ? option.type : undefined))].flat(2)
  return types.length === 0 || types.some((one) => typeof one !== 'string') ? undefined : types
}
