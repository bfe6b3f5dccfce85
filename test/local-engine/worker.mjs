// One of several apps on this machine. The test that forked it requests calls by message.
import { createLlm } from '@modelmount/core'

const [options] = process.argv.slice(2)
const llm = await createLlm(JSON.parse(options))

/** Bans the end-of-sequence token (id 2), so that only `maxTokens` ends an answer. */
const endless = { temperature: 0, logitBias: [[2, -100]] }

process.on('message', async ({ id, maxTokens }) => {
  const startedAt = performance.now()
  let pieces = 0
  let firstMs
  try {
    for await (const _piece of llm.chat('Hello', { model: 'noise', maxTokens, stream: true, ...endless })) {
      firstMs ??= performance.now() - startedAt
      if (++pieces === 1) process.send({ id, processId: llm.loaded()[0]?.processId })
    }
    process.send({ id, done: { pieces, firstMs } })
  } catch (error) {
    process.send({ id, error: { code: error.code, message: error.message } })
  }
})
process.on('disconnect', () => process.exit(0))
process.send({ ready: true })
