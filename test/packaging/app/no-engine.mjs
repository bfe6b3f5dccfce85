// Prints the error of a chat without an installed engine, and what the health check says.
import { createLlm } from '@modelmount/core'

const llm = await createLlm({ models: [] })
try {
  await llm.chat('Hello')
} catch ({ code, message }) {
  const { engine } = (await llm.checkHealth()).checks
  process.stdout.write(JSON.stringify({ code, message, health: engine.reason }))
} finally {
  await llm.close()
}
