/** Asks Claude Code through its SDK, and prints the answer: node claude.mjs <options as JSON> <prompt> */
import { query } from '@anthropic-ai/claude-agent-sdk'

const [options, prompt] = process.argv.slice(2)
for await (const message of query({ prompt, options: JSON.parse(options) })) {
  if (message.type !== 'result') continue
  process.stdout.write(message.result ?? JSON.stringify(message))
}
