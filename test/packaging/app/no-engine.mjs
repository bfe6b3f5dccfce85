// What a user sees first where the engine is not there.
import { createLlm } from '@modelmount/core'

const llm = await createLlm({ models: [] })
try {
  await llm.chat('Hello')
} catch ({ code, message }) {
  process.stdout.write(JSON.stringify({ code, message }))
} finally {
  await llm.close()
}
