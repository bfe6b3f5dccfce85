// Loaded before a contestant: replaces the two steps of each call that publish events by empty ones.
import { register } from 'node:module'

const empty = `const step = { name: 'empty', before() {} }
export const createDiagnosticsSteps = () => ({ first: step, last: step })`
const hooks = `export async function load(url, context, next) {
  if (!url.endsWith('/calls/steps/diagnostics.js')) return next(url, context)
  return { format: 'module', shortCircuit: true, source: ${JSON.stringify(empty)} }
}`

register(`data:text/javascript,${encodeURIComponent(hooks)}`)
