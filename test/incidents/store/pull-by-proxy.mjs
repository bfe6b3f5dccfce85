// Pulls a model with the settings of the environment, as an app does. Prints the last status, or the error.
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'

const [, , folder, registry, name] = process.argv
const llm = await createLlm({ engine: scriptedEngine(''), models: folder, store: { registries: [registry] } })
let last
try {
  for await (const { status } of llm.models.pull(name, { signal: new AbortController().signal }))
    last = status
} catch (error) {
  last = `${error.code}: ${error.message}`
}
await llm.close()
process.stdout.write(`${last}\n`)
