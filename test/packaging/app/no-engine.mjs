// Prints the error of a chat without an installed engine.
import { createLlm } from '@modelmount/core'

const llm = await createLlm({ models: [] })
try {
  await llm.chat('Hello')
} catch ({ code, message }) {
  process.stdout.write(JSON.stringify({ code, message }))
} finally {
  await llm.close()
}
