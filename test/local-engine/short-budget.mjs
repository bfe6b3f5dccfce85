// A model process that gives each call 2 s of CPU time for its text, not 10 s, so that tests wait less.
import { register } from 'node:module'

const hooks = `export async function load(url, context, next) {
  const module = await next(url, context)
  if (!url.endsWith('/model-process/workers/cpu-budget.js')) return module
  const source = String(module.source).replace(/callBudgetMs = 10_000/, 'callBudgetMs = 2_000')
  if (source === String(module.source)) throw new Error('The CPU time of a call has another declaration.')
  return { ...module, source }
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
await import('@modelmount/core/model-process')
