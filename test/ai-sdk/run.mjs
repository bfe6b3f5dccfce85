/** Runs all situations, and prints their results as JSON: node run.mjs <folder of models>. */
import { createModelmount } from '@modelmount/ai-sdk'
import { createLlm } from '@modelmount/core'
import { mockSituations } from './same-as-mock.mjs'
import { realSituations, scriptedSituations } from './situations.mjs'

const results = {}
async function runAll(situations, argument) {
  for (const [name, run] of Object.entries(situations))
    results[name] = await run(argument).catch((error) => ({ error: String(error.stack) }))
}

await runAll(scriptedSituations)
await runAll(mockSituations)
const llm = await createLlm({ models: process.argv[2] })
await runAll(realSituations, createModelmount(llm))
await llm.close()
process.stdout.write(JSON.stringify({ node: process.version, results }))
