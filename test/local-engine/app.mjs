// An app of its own process, to be killed: an answer without end, and nothing that tidies up.
import { createLlm } from '@modelmount/core'

const [folder, mode] = process.argv.slice(2)
const llm = await createLlm({ models: folder })
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

if (mode === 'once') {
  await llm.chat('Hello', { model: 'noise', maxTokens: 3 })
  say({ processId: llm.loaded()[0].processId })
} else {
  for (;;) {
    for await (const _piece of llm.chat('Hello', { model: 'noise', stream: true })) {
      say({ processId: llm.loaded()[0].processId })
    }
  }
}
