/**
 * Compiles JSON Schema to a grammar. Every text that the grammar accepts is valid under the schema. An error
 * names an unsupported keyword. Properties follow the order of declaration. Values are compact JSON (see
 * `json.ts`).
 */
import { invalidRequest, LlmError } from '../../errors.ts'
import { drain } from '../../util/drain.ts'
import { TooComplexError } from '../automata/automaton.ts'
import { type Expression, empty } from '../gbnf/expressions.ts'
import { Grammar, printRules } from '../gbnf/grammar.ts'
import { buildArrayExpression } from './arrays.ts'
import { buildTextRule, buildWordsRule } from './automaton-rules.ts'
import { type Conjunction, conjoin, findKeyword, toMeaningKey } from './conjunction.ts'
import { anyInteger, anyNumber } from './json.ts'
import type { SchemaNode } from './keywords.ts'
import { LeftFactoring } from './left-factoring.ts'
import { jsonNotation, type Notation } from './notation.ts'
import { buildNumberAutomaton } from './number-automaton.ts'
import { isUnbounded } from './numbers.ts'
import { buildObjectExpression, withDeclaredOnly } from './objects.ts'
import { openSchema } from './references.ts'
import type { Shape } from './shape.ts'
import { ShapeResolver } from './shapes.ts'
import { withKeywordError } from './strings.ts'

/**
 * Compiles a single schema for tests of schema semantics. Accepts undeclared properties. Throws an
 * `LlmError` `invalid_request` with pointer and keyword in `param`. Its `issue` is `value` if the schema is
 * invalid, contradictory or too large, and `unsupported` if a keyword or value has no grammar.
 */
export function schemaToGrammar(schema: unknown): string {
  const grammar = new Grammar()
  const rules = grammar.collectRules(addSchema(grammar, schema, 'values', 'all'))
  if (rules.size === 0) throw unsatisfiable()
  return printRules(rules)
}

export const unsatisfiable = () =>
  invalidRequest('The schema contradicts itself: no value can satisfy it.', { param: '#', issue: 'value' })

/** Prefixes JSON pointers in errors with the request field. */
export function withErrorField<T>(field: string, build: () => T): T {
  try {
    return build()
  } catch (error) {
    if (!(error instanceof LlmError)) throw error
    const { message, details } = error
    throw invalidRequest(message, { ...details, param: `${field}${details.param ?? ''}` })
  }
}

/**
 * Adds a schema to a grammar.
 * @param only whether the grammar accepts all values of the schema or only its objects
 * @param properties `declared` drops undeclared properties, because models invent names. It keeps properties
 *   that `patternProperties` or `additionalProperties` covers. `all` drops none, for tests of schema
 *   semantics.
 */
export function addSchema(
  grammar: Grammar,
  schema: unknown,
  only: 'objects' | 'values' = 'values',
  properties: 'declared' | 'all' = 'declared',
  notation = jsonNotation,
): Expression {
  try {
    return new SchemaCompiler(grammar, openSchema(schema), properties, notation).compile(only)
  } catch (error) {
    if (error instanceof TooComplexError)
      throw invalidRequest(`The JSON schema cannot be converted to a grammar: ${error.message}.`, {
        param: '#',
        issue: 'unsupported',
      })
    throw error
  }
}

const objects: Conjunction = [{ schema: { type: 'object' }, at: 'object' }]

/** Builds one rule per conjunction of schemas. Uses a stack, because recursive schemas nest without end. */
class SchemaCompiler {
  readonly #grammar: Grammar
  readonly #root: SchemaNode
  readonly #properties: 'declared' | 'all'
  readonly #notation: Notation
  readonly #shapes: ShapeResolver
  readonly #alternatives: LeftFactoring
  readonly #rules = new Map<string, Expression>()
  readonly #pending: (() => void)[] = []

  constructor(grammar: Grammar, root: SchemaNode, properties: 'declared' | 'all', notation: Notation) {
    this.#properties = properties
    this.#notation = notation
    this.#grammar = grammar
    this.#alternatives = new LeftFactoring(grammar)
    this.#root = root
    this.#shapes = new ShapeResolver(root)
  }

  compile(only: 'objects' | 'values'): Expression {
    const rule = this.#ruleOf(conjoin([this.#root], only === 'objects' ? objects : []))
    for (const build of drain(this.#pending)) build()
    this.#shapes.runDeferredChecks()
    return rule
  }

  #ruleOf = (conjunction: Conjunction): Expression => {
    if (conjunction.length === 0) return this.#notation.buildAnyValue(this.#grammar)
    const key = toMeaningKey(conjunction)
    this.#shapes.budget.spend(key.length / 50)
    const known = this.#rules.get(key)
    if (known) return known
    const { rule, setBody } = this.#grammar.reserve('value')
    this.#rules.set(key, rule)
    this.#pending.push(() => {
      const options = this.#shapes.resolve(conjunction).map((shape) => this.#toExpression(shape, conjunction))
      setBody(this.#alternatives.factor(options))
    })
    return rule
  }

  #toExpression(shape: Shape, conjunction: Conjunction): Expression {
    const grammar = this.#grammar
    switch (shape.type) {
      case 'values': {
        const texts = new Set(shape.values.map((value) => this.#notation.writeValue(value)))
        return buildWordsRule(
          [...texts].map((text) => [text, empty]),
          grammar,
        )
      }
      case 'number':
        if (isUnbounded(shape)) return shape.isInteger ? anyInteger(grammar) : anyNumber(grammar)
        return buildTextRule(
          withKeywordError(...findKeyword(conjunction, 'multipleOf'), () =>
            this.#shapes.budget.getAutomaton(`number ${JSON.stringify(shape)}`, () =>
              buildNumberAutomaton(shape),
            ),
          ),
          grammar,
        )
      case 'string':
        return withKeywordError(...findKeyword(conjunction, 'pattern', 'format'), () =>
          this.#notation.buildString(shape, grammar),
        )
      case 'array':
        return buildArrayExpression(shape, grammar, this.#ruleOf)
      case 'object':
        return buildObjectExpression(
          this.#properties === 'all' ? shape : withDeclaredOnly(shape),
          grammar,
          this.#notation,
          this.#ruleOf,
        )
    }
  }
}
