// Imported before an app. The app then uses version 1 of the IPC protocol.
import { register } from 'node:module'

const hooks = `export async function load(url, context, next) {
  const module = await next(url, context)
  if (!url.endsWith('/engine/local/ipc/process-config.js')) return module
  return { ...module, source: String(module.source).replace(/protocolVersion = \\d+/, 'protocolVersion = 1') }
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
