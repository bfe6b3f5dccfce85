/** The metrics and labels that an expression of PromQL uses, from the parser of Prometheus' own web page. */
import { parser } from '@prometheus-io/lezer-promql'

type SyntaxNode = ReturnType<typeof parser.parse>['topNode']

export interface Selector {
  readonly metric: string
  /** Labels of its matchers. */
  readonly labels: readonly string[]
}

export interface Expression {
  readonly selectors: readonly Selector[]
  /** Labels of `by`, `on`, `ignoring`, `group_left` and the like. */
  readonly grouping: readonly string[]
}

/**
 * Throws if the expression does not parse.
 *
 * @param source with Grafana's variables, which become texts and durations
 */
export function parseExpression(source: string): Expression {
  const text = withoutVariables(source)
  const selectors: Selector[] = []
  const grouping: string[] = []
  const textOf = ({ from, to }: { readonly from: number; readonly to: number }) => text.slice(from, to)
  parser.parse(text).iterate({
    enter({ name, node, from }) {
      if (node.type.isError) throw new Error(`${source}: does not parse at position ${from}`)
      if (name === 'VectorSelector')
        selectors.push({
          metric: textOf(node.getChild('Identifier') ?? node),
          labels: matchersOf(node).map(textOf),
        })
      if (name === 'GroupingLabels') grouping.push(...node.getChildren('LabelName').map(textOf))
    },
  })
  return { selectors, grouping }
}

const matchersOf = (selector: SyntaxNode): readonly SyntaxNode[] =>
  selector
    .getChildren('LabelMatchers')
    .flatMap((matchers) => matchers.getChildren('UnquotedLabelMatcher'))
    .flatMap((matcher) => matcher.getChildren('LabelName'))

/** Replaces Grafana's variables by values that they can have. */
export const withoutVariables = (source: string): string =>
  source.replaceAll(/\$__(rate_interval|interval|range)/g, '5m').replaceAll(/\$\w+|\$\{\w+\}/g, 'any')
