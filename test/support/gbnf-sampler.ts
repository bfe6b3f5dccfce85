import type { Expression, Rules } from '../../packages/core/src/grammar/gbnf/expressions.ts'
import { readGbnf } from '../../packages/core/src/grammar/gbnf/read-gbnf.ts'

/**
 * Generates random texts that match a grammar. After `choices` random choices it takes the shortest way to
 * the end.
 */
export class GbnfSampler {
  readonly #rules: Rules
  /** Length of the shortest text of each rule, in characters. */
  readonly #shortest = new Map<string, number>()

  constructor(grammar: string) {
    this.#rules = readGbnf(grammar)
    for (let changed = true; changed; ) {
      changed = false
      // Most rules refer to later rules, so this order needs the fewest rounds.
      for (const [name, body] of [...this.#rules].reverse()) {
        const length = this.#least(body)
        if (length < (this.#shortest.get(name) ?? Number.POSITIVE_INFINITY)) {
          this.#shortest.set(name, length)
          changed = true
        }
      }
    }
  }

  /** @param random returns a number from 0 to below 1 */
  sample(random: () => number, choices = 40): string {
    const todo: Expression[] = [{ kind: 'rule', name: 'root' }]
    let written = ''
    let left = choices
    const pick = (count: number) => Math.floor(random() * count)
    while (todo.length > 0) {
      const part = todo.pop() as Expression
      switch (part.kind) {
        case 'text':
          written += part.text
          break
        case 'characters': {
          const [low, high] = part.ranges[pick(part.ranges.length)] ?? [0, 0]
          // Mostly from the beginning of the range: letters and digits rather than unusual characters.
          const width = random() < 0.9 ? Math.min(high - low, 0x5f) : high - low
          written += String.fromCodePoint(low + pick(width + 1))
          break
        }
        case 'rule':
          todo.push(this.#rules.get(part.name) as Expression)
          break
        case 'sequence':
          todo.push(...[...part.parts].reverse())
          break
        case 'choice': {
          const ends = part.options.filter((option) => Number.isFinite(this.#least(option)))
          const shortest = Math.min(...ends.map((option) => this.#least(option)))
          const able = left-- > 0 ? ends : ends.filter((option) => this.#least(option) === shortest)
          todo.push(able[pick(able.length)] as Expression)
          break
        }
        case 'repeat': {
          const room = Math.min(part.max - part.min, Math.max(0, Math.min(4, left)))
          const times = part.min + (Number.isFinite(this.#least(part.of)) ? pick(room + 1) : 0)
          left -= times - part.min
          for (let time = 0; time < times; time++) todo.push(part.of)
        }
      }
    }
    return written
  }

  #least(expression: Expression): number {
    switch (expression.kind) {
      case 'text':
        return expression.text.length
      case 'characters':
        return expression.ranges.length > 0 ? 1 : Number.POSITIVE_INFINITY
      case 'rule':
        return this.#shortest.get(expression.name) ?? Number.POSITIVE_INFINITY
      case 'sequence':
        return expression.parts.reduce((sum, part) => sum + this.#least(part), 0)
      case 'choice':
        return Math.min(...expression.options.map((option) => this.#least(option)))
      case 'repeat':
        return expression.min === 0 ? 0 : expression.min * this.#least(expression.of)
    }
  }
}
