// Imported before an app or a model process. It then has an older version of the package.
import { register } from 'node:module'

const hooks = `export async function load(url, context, next) {
  const module = await next(url, context)
  if (!url.endsWith('/engine/local/ipc/process-config.js')) return module
  return { ...module, source: String(module.source).replace(/packageVersion = '.*?'/, "packageVersion = '0.0.9'") }
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
