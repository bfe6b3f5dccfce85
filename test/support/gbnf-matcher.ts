import {
  collectRuleNames,
  type Expression,
  type Rules,
} from '../../packages/core/src/grammar/gbnf/expressions.ts'
import { readGbnf } from '../../packages/core/src/grammar/gbnf/read-gbnf.ts'

/** The rest of a possible match: `part`, then `then`. Equal rests are the same object. */
interface Ahead {
  readonly id: number
  readonly part: Expression
  readonly then: Ahead | undefined
}

/**
 * Tells whether a text matches a GBNF grammar. Like llama.cpp, it follows all possible matches at once,
 * character by character.
 */
export class GbnfMatcher {
  readonly #rules: Rules
  readonly #aheads = new Map<string, Ahead>()
  readonly #partIds = new Map<Expression, number>()
  readonly #loops = new Map<Expression, Map<string, Expression>>()

  constructor(grammar: string) {
    this.#rules = readGbnf(grammar)
    for (const body of this.#rules.values())
      for (const name of collectRuleNames(body))
        if (!this.#rules.has(name)) throw new Error(`no rule ${name}`)
  }

  matches(text: string): boolean {
    const root = this.#rules.get('root')
    if (!root) return false
    let states = this.#open([this.#ahead(root, undefined)])
    for (const character of text) {
      const code = character.codePointAt(0) as number
      const next: (Ahead | undefined)[] = []
      for (const state of states) {
        if (!state) continue
        const { part, then } = state
        if (part.kind === 'characters' && part.ranges.some(([low, high]) => low <= code && code <= high))
          next.push(then)
        if (part.kind === 'text' && part.text.startsWith(character)) {
          const rest = part.text.slice(character.length)
          next.push(
            rest === '' ? then : this.#ahead(this.#derived(part, 'rest', { kind: 'text', text: rest }), then),
          )
        }
      }
      states = this.#open(next)
      if (states.size === 0) return false
    }
    return states.has(undefined)
  }

  /**
   * Expands rules and choices until each state expects a character. `undefined` stands for the end of the
   * text.
   */
  #open(from: readonly (Ahead | undefined)[]): Set<Ahead | undefined> {
    const waiting = new Set<Ahead | undefined>()
    const seen = new Set<Ahead | undefined>()
    const todo = [...from]
    while (todo.length > 0) {
      const state = todo.pop()
      if (seen.has(state)) continue
      seen.add(state)
      if (!state) {
        waiting.add(undefined)
        continue
      }
      const { part, then } = state
      switch (part.kind) {
        case 'characters':
          waiting.add(state)
          break
        case 'text':
          if (part.text === '') todo.push(then)
          else waiting.add(state)
          break
        case 'rule':
          todo.push(this.#ahead(this.#rules.get(part.name) as Expression, then))
          break
        case 'sequence':
          todo.push(part.parts.reduceRight<Ahead | undefined>((rest, item) => this.#ahead(item, rest), then))
          break
        case 'choice':
          for (const option of part.options) todo.push(this.#ahead(option, then))
          break
        case 'repeat': {
          const { of, min, max } = part
          if (min === 0) todo.push(then)
          if (max === 0) break
          const rest = this.#derived(of, `${min},${max}`, {
            kind: 'repeat',
            of,
            min: Math.max(0, min - 1),
            max: max - 1,
          })
          todo.push(this.#ahead(of, this.#ahead(rest, then)))
        }
      }
    }
    return waiting
  }

  #derived(from: Expression, key: string, expression: Expression): Expression {
    const known = this.#loops.get(from) ?? new Map<string, Expression>()
    this.#loops.set(from, known)
    const same = known.get(key) ?? expression
    known.set(key, same)
    return same
  }

  #ahead(part: Expression, then: Ahead | undefined): Ahead {
    const partId = this.#partIds.get(part) ?? this.#partIds.size
    this.#partIds.set(part, partId)
    const key = `${partId} ${then?.id ?? ''}`
    const known = this.#aheads.get(key) ?? { id: this.#aheads.size, part, then }
    this.#aheads.set(key, known)
    return known
  }
}
