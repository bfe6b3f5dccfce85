/** Adds the documents that belong to a question to the system message of a chat. */

/** @param search returns texts: `search(question, { signal })` */
export const createRetrieval = (search) => ({
  name: 'retrieval',

  async before({ kind, request, signal }) {
    // Counts the tokens of the documents, too, when a client counts those of its prompt.
    if ((kind !== 'generate' && kind !== 'count') || request.input.kind !== 'chat') return undefined
    const { messages } = request.input
    const documents = await search(questionOf(messages), { signal })
    if (documents.length === 0) return undefined
    const text = `Answer with the help of these documents:\n\n${documents.join('\n\n')}`
    return { ...request, input: { ...request.input, messages: withSystemText(messages, text) } }
  },
})

const questionOf = (messages) =>
  (messages.findLast(({ role }) => role === 'user')?.content ?? [])
    .flatMap((part) => (part.type === 'text' ? [part.text] : []))
    .join('\n')

function withSystemText(messages, text) {
  const part = { type: 'text', text }
  const [first, ...others] = messages
  return first?.role === 'system'
    ? [{ ...first, content: [...first.content, { type: 'text', text: '\n\n' }, part] }, ...others]
    : [{ role: 'system', content: [part] }, ...messages]
}
