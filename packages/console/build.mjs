// Builds the console: the types of the admin API from its OpenAPI document, then the pages, also compressed.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { openApiDocument } from '@modelmount/core/operations'
import openapiTS, { astToString } from 'openapi-typescript'
import { build } from 'vite'

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url))
const types = astToString(await openapiTS(openApiDocument()))
writeFileSync(path('web/api/admin-api.d.ts'), types)
execFileSync(process.execPath, [path('../../node_modules/typescript/bin/tsc'), '-p', path('web')], {
  stdio: 'inherit',
})
await build({ configFile: path('vite.config.ts'), logLevel: 'warn' })

const folder = path('dist/web')
for (const name of readdirSync(folder, { recursive: true })) {
  const file = join(folder, name)
  if (statSync(file).isFile()) writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }))
}
