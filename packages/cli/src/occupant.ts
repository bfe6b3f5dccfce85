/** Who answers on a port that is taken: mostly the user's own Ollama, or we ourselves in another terminal. */

/** So long somebody who listens but does not answer is waited for. */
const patienceMs = 1_000

export async function occupantOf(address: string): Promise<string> {
  const [greeting, models] = await Promise.all([ask(`${address}/`), ask(`${address}/v1/models`)])
  // Its greeting is ours, too: that is how clients of both find out that somebody is there.
  if (models.includes('"owned_by":"modelmount"')) return 'another Modelmount'
  return greeting.startsWith('Ollama is running') ? 'Ollama' : 'another program'
}

async function ask(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(patienceMs) })
    return await response.text()
  } catch {
    return ''
  }
}
