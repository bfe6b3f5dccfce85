/** No request field that a client knows is ignored without a reason. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { MessagesRequest } from '../../packages/core/src/dialects/anthropic/schema.ts'
import {
  ChatRequest,
  EmbedRequest,
  OllamaGenerateRequest,
} from '../../packages/core/src/dialects/ollama/schema.ts'
import { EmbeddingRequest } from '../../packages/core/src/dialects/openai/embeddings.ts'
import { RerankBody } from '../../packages/core/src/dialects/openai/rerank.ts'
import { ResponsesRequest } from '../../packages/core/src/dialects/openai/responses/schema.ts'
import { ChatCompletionRequest, CompletionRequest } from '../../packages/core/src/dialects/openai/schema.ts'
import { ModelParameters } from '../../packages/core/src/models/modelfile/parameters.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { withSources } from '../templates/release.mjs'
import { type Field, type Fields, routes } from './fields.ts'
import { pageOf } from './page.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models: emptyFolder() })
const server = await listen(toNodeHandler(routesFor(), llm))

afterAll(async () => {
  await server.close()
  await llm.close()
})

/** The names of the fields of a schema, below its refinements and transforms. */
function fieldsOf(schema: unknown): readonly string[] {
  const {
    shape,
    in: input,
    out,
  } = schema as { readonly shape?: object; readonly in?: unknown; readonly out?: unknown }
  if (shape) return Object.keys(shape)
  return [input, out].flatMap((part) => (part ? fieldsOf(part) : []))
}

/** The names of the fields of an interface in the types of an SDK. */
function interfaceFields(file: string, name: string): readonly string[] {
  const source = readFileSync(join(root, 'node_modules', file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')
  const start = source.indexOf('{', source.search(new RegExp(`interface ${name}\\b`)))
  let depth = 0
  let own = ''
  for (let at = start; at < source.length && (depth > 0 || at === start); at++) {
    if (source[at] === '}') depth--
    if (depth === 1) own += source[at]
    if (source[at] === '{') depth++
  }
  return [...own.matchAll(/(?:^|[;\n])\s*(?:readonly )?['"]?(\w+)['"]?\??:/g)].map(
    ([, field]) => field as string,
  )
}

const messages = [{ role: 'user', content: 'Hi' }]
const openaiTypes = 'openai/resources'
const anthropicTypes = '@anthropic-ai/sdk/resources'
const known: Readonly<
  Record<
    keyof typeof routes,
    { readonly schema: unknown; readonly types: readonly string[]; readonly body: object }
  >
> = {
  'POST /v1/chat/completions': {
    schema: ChatCompletionRequest,
    types: interfaceFields(
      `${openaiTypes}/chat/completions/completions.d.ts`,
      'ChatCompletionCreateParamsBase',
    ),
    body: { messages },
  },
  'POST /v1/completions': {
    schema: CompletionRequest,
    types: interfaceFields(`${openaiTypes}/completions.d.ts`, 'CompletionCreateParamsBase'),
    body: { prompt: 'Hi' },
  },
  'POST /v1/responses': {
    schema: ResponsesRequest,
    types: interfaceFields(`${openaiTypes}/responses/responses.d.ts`, 'ResponseCreateParamsBase'),
    body: { input: 'Hi' },
  },
  'POST /v1/embeddings': {
    schema: EmbeddingRequest,
    types: interfaceFields(`${openaiTypes}/embeddings.d.ts`, 'EmbeddingCreateParams'),
    body: { input: 'Hi' },
  },
  'POST /v1/rerank': {
    schema: RerankBody,
    types: [],
    body: { query: 'river', documents: ['a river', 'stars'] },
  },
  'POST /v1/messages': {
    schema: MessagesRequest,
    types: [
      ...interfaceFields(`${anthropicTypes}/messages/messages.d.ts`, 'MessageCreateParamsBase'),
      ...interfaceFields(`${anthropicTypes}/beta/messages/messages.d.ts`, 'MessageCreateParamsBase'),
    ],
    body: { messages, max_tokens: 5 },
  },
  'POST /api/chat': {
    schema: ChatRequest,
    types: interfaceFields('ollama/src/interfaces.ts', 'ChatRequest'),
    body: { messages, stream: false },
  },
  'POST /api/generate': {
    schema: OllamaGenerateRequest,
    types: interfaceFields('ollama/src/interfaces.ts', 'GenerateRequest'),
    body: { prompt: 'Hi', stream: false },
  },
  'POST /api/embed': {
    schema: EmbedRequest,
    types: interfaceFields('ollama/src/interfaces.ts', 'EmbedRequest'),
    body: { input: 'Hi' },
  },
  'options of Ollama': {
    schema: ModelParameters,
    types: interfaceFields('ollama/src/interfaces.ts', 'Options'),
    body: { messages, stream: false },
  },
}

async function send(route: keyof typeof routes, field: string, value: unknown) {
  const isOption = route === 'options of Ollama'
  const { body } = known[route]
  const fields = isOption ? { options: { [field]: value } } : { [field]: value }
  const response = await fetch(server.url + (isOption ? '/api/chat' : route.slice('POST '.length)), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', ...body, ...fields }),
  })
  return { status: response.status, text: await response.text() }
}

const refusals = (fields: Fields) =>
  Object.entries(fields).flatMap(([name, field]) =>
    typeof field === 'object' && 'refused' in field ? [[name, field.refused] as const] : [],
  )
const ignoredFields = (fields: Fields) =>
  Object.entries(fields).flatMap(([name, field]) =>
    typeof field === 'object' && 'ignored' in field ? [[name, field] as const] : [],
  )

describe.each(Object.keys(routes) as (keyof typeof routes)[])('the fields of %s', (route) => {
  const fields: Fields = routes[route]
  const { schema, types } = known[route]

  test('are all in the table: those of the SDK, and those of the schema', () => {
    const missing = [...types, ...fieldsOf(schema)].filter((name) => !Object.hasOwn(fields, name))

    expect(missing).toEqual([])
  })

  test('that are taken are read by the schema', () => {
    const read = new Set(fieldsOf(schema))
    const taken = Object.entries(fields).flatMap(([name, field]: [string, Field]) =>
      field === 'taken' ? name : [],
    )

    expect(taken.filter((name) => !read.has(name))).toEqual([])
  })

  test('that are refused get a 400 that names them', async () => {
    const answers = await Promise.all(
      refusals(fields).map(async ([name, value]) => ({ name, ...(await send(route, name, value)) })),
    )

    // OpenAI's errors have the name in a field. Other errors have it in their text, in any case.
    const isNamed = (name: string, text: string): boolean => {
      const { error } = JSON.parse(text) as { error: { param?: string } | string }
      const param = typeof error === 'object' ? error.param : undefined
      return param === undefined ? text.toLowerCase().includes(name) : param === name
    }
    const wrong = answers.filter(({ name, status, text }) => status !== 400 || !isNamed(name, text))
    expect(wrong).toEqual([])
  })

  test('that are ignored have a reason, and change nothing', async () => {
    const plain = engine.requests.length
    const answers = await Promise.all(
      ignoredFields(fields).map(async ([name, { ignored, value }]) => {
        expect(ignored).toMatch(/^[A-Z][^\n]{10,100}\.$/)
        return { name, ...(await send(route, name, value)) }
      }),
    )

    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(new Set(engine.requests.slice(plain).map((request) => JSON.stringify(request))).size).toBeLessThan(
      2,
    )
  })
})

test('the types of the SDKs have been read', () => {
  const counts = Object.values(known).map(({ types }) => types.length)

  expect(counts.filter((count) => count === 0)).toHaveLength(1)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(150)
})

test("the fields of llama.cpp's server, of the release in node-llama-cpp, are all in the table", () => {
  const file = 'tools/server/server-schema.cpp'
  const source = withSources([file], (folder) => readFileSync(join(folder, file), 'utf8'))
  const names = [...source.matchAll(/new field_\w+\("([\w.]+)"/g)].map(([, name]) => name as string)
  const listed = { ...routes['POST /v1/chat/completions'], ...routes['POST /v1/completions'] }

  expect(names.length).toBeGreaterThan(60)
  expect(names.filter((name) => !Object.hasOwn(listed, name))).toEqual([])
})

test('the page shows the table', async () => {
  await expect(pageOf(routes)).toMatchFileSnapshot(join(root, 'docs/compatibility/request-fields.md'))
})
