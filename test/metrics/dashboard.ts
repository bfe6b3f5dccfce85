/** The Grafana dashboard and the alert rules of the documentation. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../packaging/npm.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Variable {
  readonly name: string
  readonly type: string
  readonly definition?: string
}

export interface Dashboard {
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly Variable[] }
}

export const dashboard: Dashboard = JSON.parse(
  readFileSync(join(root, 'docs/operations/grafana/modelmount.json'), 'utf8'),
)

/** All expressions of the panels. */
export const panelExpressions: readonly string[] = dashboard.panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) => expr),
)

/** The selectors of `label_values(…)`, from which Grafana fills the variables. */
export const variableExpressions: readonly string[] = dashboard.templating.list.flatMap(({ definition }) => {
  const [, selector] = /^label_values\((.*), \w+\)$/.exec(definition ?? '') ?? []
  return selector === undefined ? [] : [selector]
})

export const alertsFile = join(root, 'docs/operations/prometheus/alerts.yml')

/** Each expression of an alert rule is one line. */
export const alertExpressions: readonly string[] = [
  ...readFileSync(alertsFile, 'utf8').matchAll(/^\s+expr: (.+)$/gm),
].map(([, expression]) => expression as string)
