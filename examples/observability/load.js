/** Sends chats to the app, four at a time, for a minute: node load.js [URL] [SECONDS] */
const [url = 'http://127.0.0.1:3000', seconds = '60'] = process.argv.slice(2)
const end = Date.now() + Number(seconds) * 1_000
const prompts = ['Hello', 'Tell me a story about a cat.', 'What is the capital of France?', 'Count to ten.']
let count = 0
let failures = 0

async function chat(prompt) {
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      max_tokens: 100,
      messages: [{ role: 'user', content: prompt }],
    }),
  })
  await response.text()
  count++
  if (!response.ok) failures++
}

await Promise.all(
  prompts.map(async (prompt) => {
    while (Date.now() < end) await chat(prompt)
  }),
)
process.stdout.write(`${count} chats, ${failures} failed\n`)
