/** Who answers on a port that is taken: mostly the user's own Ollama, or we ourselves in another terminal. */

/** So long somebody who listens but does not answer is waited for. */
const patienceMs = 1_000

export async function occupantOf(address: string): Promise<string> {
  const greeting = await ask(`${address}/`)
  if (greeting.startsWith('Ollama is running')) return 'Ollama'
  return (await ask(`${address}/v1/models`)).includes('"owned_by":"modelmount"')
    ? 'another Modelmount'
    : 'another program'
}

async function ask(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(patienceMs) })
    return await response.text()
  } catch {
    return ''
  }
}
