/** Identifies the program on a port in use: mostly Ollama, or another Modelmount. */

/** Time limit for a program that listens but does not answer. */
const timeoutMs = 1_000

export async function occupantOf(address: string): Promise<string> {
  const [greeting, models] = await Promise.all([ask(`${address}/`), ask(`${address}/v1/models`)])
  // Modelmount sends the greeting of Ollama as well, because clients of Ollama look for it.
  if (models.includes('"owned_by":"modelmount"')) return 'another Modelmount'
  return greeting.startsWith('Ollama is running') ? 'Ollama' : 'another program'
}

async function ask(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) })
    return await response.text()
  } catch {
    return ''
  }
}
