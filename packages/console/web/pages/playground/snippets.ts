/** Code that sends the current request from a program. */
import { anthropic } from './apis/anthropic.ts'
import type { ApiName, ChatRequest } from './apis/api.ts'
import { apis } from './apis/index.ts'
import { ollama } from './apis/ollama.ts'
import { openai } from './apis/openai.ts'

export interface SnippetOptions {
  readonly request: ChatRequest
  /** The API of `curl`. */
  readonly api: ApiName
  /** Such as `https://example.com/llm`. */
  readonly apiUrl: string
  /** Whether programs need an API key. The snippets read it from the environment variable `MODELMOUNT_API_KEY`. */
  readonly needsKey: boolean
}

export const snippetNames = ['curl', 'openai', 'anthropic', 'ollama'] as const
export type SnippetName = (typeof snippetNames)[number]

export const createSnippet = (name: SnippetName, options: SnippetOptions): string =>
  writers[name]({ ...options, apiUrl: options.apiUrl.replace(/\/+$/, '') })

const curl = ({ request, api, apiUrl, needsKey }: SnippetOptions): string => {
  const { path, toBody } = apis[api]
  const lines = [
    `curl --no-buffer ${quoteForShell(apiUrl + path)}`,
    "-H 'content-type: application/json'",
    // Double quotes, because the shell replaces the variable.
    ...(needsKey ? ['-H "authorization: Bearer $MODELMOUNT_API_KEY"'] : []),
    `-d ${quoteForShell(JSON.stringify(toBody(request), null, 2))}`,
  ]
  return `${lines.join(' \\\n  ')}\n`
}

/** The packages refuse to start without a key. */
const keyOf = (needsKey: boolean): string => (needsKey ? 'process.env.MODELMOUNT_API_KEY' : "'not-needed'")

const openaiCode = ({ request, apiUrl, needsKey }: SnippetOptions): string => `import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: ${quote(`${apiUrl}/v1`)},
  apiKey: ${keyOf(needsKey)},
})

const stream = await client.chat.completions.create(${toCode(openai.toBody(request))})
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '')
`

const anthropicCode = ({
  request,
  apiUrl,
  needsKey,
}: SnippetOptions): string => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({
  baseURL: ${quote(apiUrl)},
  apiKey: ${keyOf(needsKey)},
})

const stream = await client.messages.create(${toCode(anthropic.toBody(request))})
for await (const event of stream)
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
    process.stdout.write(event.delta.text)
`

const ollamaCode = ({ request, apiUrl, needsKey }: SnippetOptions): string => `import { Ollama } from 'ollama'

const client = new Ollama({
  host: ${quote(apiUrl)},${
    needsKey
      ? `
  headers: { authorization: \`Bearer \${process.env.MODELMOUNT_API_KEY}\` },`
      : ''
  }
})

const stream = await client.chat(${toCode(ollama.toBody(request))})
for await (const { message } of stream) process.stdout.write(message.content)
`

const writers: Readonly<Record<SnippetName, (options: SnippetOptions) => string>> = {
  curl,
  openai: openaiCode,
  anthropic: anthropicCode,
  ollama: ollamaCode,
}

/** Only a single quote ends a quoted text of a shell. */
const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A text of JavaScript. Those with quotes or special characters keep the escapes of JSON. */
const quote = (text: string): string =>
  /^[^'"\\\p{Cc}\u2028\u2029]*$/u.test(text) ? `'${text}'` : JSON.stringify(text)

/** Prints a JSON value as a person would write it: names without quotes. */
function toCode(value: unknown, indent = ''): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value !== 'object' || value === null) return String(JSON.stringify(value))
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const inner = `${indent}  `
  const items = Array.isArray(value)
    ? value.map((item) => toCode(item, inner))
    : Object.entries(value).map(([name, item]) => `${toName(name)}: ${toCode(item, inner)}`)
  if (items.length === 0) return `${open}${close}`
  const line = Array.isArray(value)
    ? `${open}${items.join(', ')}${close}`
    : `${open} ${items.join(', ')} ${close}`
  if (indent.length + line.length <= maxLine && !line.includes('\n')) return line
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${close}`
}

/** In characters, without the name before a value. */
const maxLine = 80

/** `__proto__` without brackets would set the prototype. */
const toName = (name: string): string =>
  name === '__proto__' ? "['__proto__']" : /^[a-z_$][\w$]*$/i.test(name) ? name : quote(name)
