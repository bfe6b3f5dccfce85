const { createLlm } = require('@modelmount/core')

async function main() {
  const llm = await createLlm()
  const { text } = await llm.chat('Hello', { temperature: 0 })
  await llm.close()
  process.stdout.write(JSON.stringify({ node: process.version, text }))
}

main()
