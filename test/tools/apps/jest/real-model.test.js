import { createLlm } from '@modelmount/core'

test('the built-in model answers', async () => {
  const llm = await createLlm({ database: ':memory:' })

  const { text } = await llm.chat('Hello', { model: 'tiny', temperature: 0 })
  await llm.close()

  expect(text).toBe('Hello! How can I help you?')
})
