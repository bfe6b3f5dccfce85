/** The dashboard and the alert rules use the metrics and labels that exist. */
import { type MetricDefinition, metrics } from '@modelmount/core/metrics'
import { expect, test } from 'vitest'
import { alertExpressions, dashboard, panelExpressions, variableExpressions } from './dashboard.ts'
import { parseExpression, type Selector } from './expressions.ts'

/** Labels that Prometheus adds to each series. */
const added = ['instance', 'job']
const definitions: Readonly<Record<string, MetricDefinition>> = metrics

/** The labels of the series of a name, such as a histogram's buckets. */
function labelsOf({ metric }: Pick<Selector, 'metric'>): readonly string[] | undefined {
  // Prometheus itself has it: whether a scrape has succeeded.
  if (metric === 'up') return added
  const { type, labels } = definitions[metric] ?? {}
  if (labels && type !== 'histogram') return [...labels, ...added]
  const [, base = '', series] = /^(.*)_(bucket|sum|count)$/.exec(metric) ?? []
  const histogram = definitions[base]
  if (histogram?.type !== 'histogram') return undefined
  return [...histogram.labels, ...added, ...(series === 'bucket' ? ['le'] : [])]
}

const allExpressions = [...panelExpressions, ...variableExpressions, ...alertExpressions]

test('all expressions parse', () => {
  expect(panelExpressions.length).toBeGreaterThan(20)
  expect(alertExpressions.length).toBeGreaterThan(4)
  for (const expression of allExpressions) parseExpression(expression)
  expect(() => parseExpression('sum by (model (rate(modelmount_calls_total[5m])))')).toThrow('does not parse')
})

test.each(allExpressions)('%s has metrics and labels that exist', (expression) => {
  const { selectors, grouping } = parseExpression(expression)

  expect(selectors).not.toEqual([])
  for (const selector of selectors) {
    const labels = labelsOf(selector)
    expect(labels, selector.metric).toBeDefined()
    expect(labels).toEqual(expect.arrayContaining([...selector.labels]))
  }
  const grouped = selectors.map((selector) => labelsOf(selector) ?? [])
  for (const label of grouping) for (const labels of grouped) expect(labels).toContain(label)
})

test('each metric is in a panel', () => {
  const shown = new Set(
    panelExpressions
      .flatMap((expression) => parseExpression(expression).selectors)
      .map(({ metric }) => metric.replace(/_bucket$/, '')),
  )

  expect([...shown].sort()).toEqual(Object.keys(metrics).sort())
})

test('each panel uses the variables, and a legend of labels that its query keeps', () => {
  expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'instance', 'model'])
  expect(variableExpressions).toHaveLength(2)
  for (const { type, title, datasource, targets = [] } of dashboard.panels) {
    if (type === 'row') continue
    expect(datasource?.uid, title).toBe(`\${datasource}`)
    expect(targets.length, title).toBeGreaterThan(0)
    for (const { expr, legendFormat } of targets) {
      const { selectors, grouping } = parseExpression(expr)
      for (const { metric, labels } of selectors) {
        const variables = ['instance', 'model'].filter((name) => labelsOf({ metric })?.includes(name))
        expect(labels, `${title}: ${metric}`).toEqual(expect.arrayContaining(variables))
      }
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect(grouping, title).toContain(label)
    }
  }
})

test('panels neither overlap nor exceed the 24 columns of the grid', () => {
  const taken = new Map<string, string>()
  for (const { title, gridPos } of dashboard.panels)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(x, title).toBeLessThan(24)
        expect(taken.get(`${x} ${y}`), title).toBeUndefined()
        taken.set(`${x} ${y}`, title)
      }
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})
