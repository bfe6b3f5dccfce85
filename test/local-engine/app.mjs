// An app for a child process that the test kills. In the mode `once` it makes one call and ends. Otherwise it
// generates until it is killed. It never calls `close()`.
import { createLlm } from '@modelmount/core'

const [folder, mode] = process.argv.slice(2)
const llm = await createLlm({ models: folder })
const report = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

if (mode === 'once') {
  await llm.chat('Hello', { model: 'noise', maxTokens: 3 })
  report({ processId: llm.loaded()[0].processId })
} else {
  for (;;) {
    for await (const _piece of llm.chat('Hello', { model: 'noise', stream: true })) {
      report({ processId: llm.loaded()[0].processId })
    }
  }
}
