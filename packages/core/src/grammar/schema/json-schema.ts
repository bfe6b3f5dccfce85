/**
 * JSON Schema as a grammar of its values: each text that the grammar takes satisfies the schema. What cannot be kept
 * is refused by name. Properties come in the order in which they are declared, values compact (see `json.ts`).
 */
import { invalidRequest, LlmError } from '../../errors.ts'
import { TooComplex } from '../automata/automaton.ts'
import { textRule, wordsRule } from '../automata/spell.ts'
import { type Expression, nothing } from '../gbnf/expressions.ts'
import { Grammar, print } from '../gbnf/grammar.ts'
import { Alternatives } from './alternatives.ts'
import { arrayExpression } from './arrays.ts'
import { both, type Conjunction, meaningOf, whoSays } from './conjunction.ts'
import { numberAutomaton } from './digits.ts'
import { anyInteger, anyNumber, anyValue } from './json.ts'
import type { Node } from './keywords.ts'
import { isPlain } from './numbers.ts'
import { declaredOnly, objectExpression } from './objects.ts'
import { openSchema } from './references.ts'
import { type Shape, Shapes } from './shapes.ts'
import { keep, stringExpression } from './strings.ts'

/**
 * GBNF. Throws `invalid_request` with the JSON pointer and the keyword in `param`: `unsupported` where it is valid but
 * no grammar says it, `value` where it is contradictory or too large.
 */
export function schemaToGrammar(schema: unknown): string {
  const grammar = new Grammar()
  const rules = grammar.rules(addSchema(grammar, schema, 'values', 'all'))
  if (rules.size === 0) throw unsatisfiable()
  return print(rules)
}

export const unsatisfiable = () =>
  invalidRequest('The schema contradicts itself: no value can satisfy it.', { param: '#', issue: 'value' })

/** Puts the field in front of the JSON pointers in errors. */
export function inField<T>(field: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof LlmError)) throw error
    const { message, details } = error
    throw invalidRequest(message, { ...details, param: `${field}${details.param ?? ''}` })
  }
}

/**
 * The values of a schema, or the objects among them, as a part of a larger grammar.
 * @param properties of an object that may be said: where some are declared, a model is not to make up others
 */
export function addSchema(
  grammar: Grammar,
  schema: unknown,
  only: 'objects' | 'values' = 'values',
  properties: 'declared' | 'all' = 'declared',
): Expression {
  try {
    return new Writer(grammar, openSchema(schema), properties).write(only)
  } catch (error) {
    if (error instanceof TooComplex)
      throw invalidRequest(`The schema cannot be kept: ${error.message}.`, {
        param: '#',
        issue: 'unsupported',
      })
    throw error
  }
}

const objects: Conjunction = [{ schema: { type: 'object' }, at: 'object' }]

/** A rule for each conjunction of schemas; made one after the other, since they can be nested without end. */
class Writer {
  readonly #grammar: Grammar
  readonly #root: Node
  readonly #properties: 'declared' | 'all'
  readonly #shapes: Shapes
  readonly #alternatives: Alternatives
  readonly #rules = new Map<string, Expression>()
  readonly #waiting: (() => void)[] = []

  constructor(grammar: Grammar, root: Node, properties: 'declared' | 'all') {
    this.#properties = properties
    this.#grammar = grammar
    this.#alternatives = new Alternatives(grammar)
    this.#root = root
    this.#shapes = new Shapes(root)
  }

  write(only: 'objects' | 'values'): Expression {
    const rule = this.#ruleOf(both([this.#root], only === 'objects' ? objects : []))
    for (let next = this.#waiting.pop(); next; next = this.#waiting.pop()) next()
    this.#shapes.prove()
    return rule
  }

  #ruleOf = (conjunction: Conjunction): Expression => {
    if (conjunction.length === 0) return anyValue(this.#grammar)
    const key = meaningOf(conjunction)
    this.#shapes.effort.spend(key.length / 50)
    const known = this.#rules.get(key)
    if (known) return known
    const { rule, become } = this.#grammar.reserve('value')
    this.#rules.set(key, rule)
    this.#waiting.push(() => {
      const options = this.#shapes.of(conjunction).map((shape) => this.#expressionOf(shape, conjunction))
      become(this.#alternatives.of(options))
    })
    return rule
  }

  #expressionOf(shape: Shape, conjunction: Conjunction): Expression {
    const grammar = this.#grammar
    switch (shape.type) {
      case 'values': {
        const texts = new Set(shape.values.map((value) => JSON.stringify(value)))
        return wordsRule(
          [...texts].map((text) => [text, nothing]),
          grammar,
        )
      }
      case 'number':
        if (isPlain(shape)) return shape.integer ? anyInteger(grammar) : anyNumber(grammar)
        return textRule(
          keep(...whoSays(conjunction, 'multipleOf'), () =>
            this.#shapes.effort.automaton(`number ${JSON.stringify(shape)}`, () => numberAutomaton(shape)),
          ),
          grammar,
        )
      case 'string':
        return keep(...whoSays(conjunction, 'pattern', 'format'), () => stringExpression(shape, grammar))
      case 'array':
        return arrayExpression(shape, grammar, this.#ruleOf)
      case 'object':
        return objectExpression(
          this.#properties === 'all' ? shape : declaredOnly(shape),
          grammar,
          this.#ruleOf,
        )
    }
  }
}
