/** The settings of the playground: what the viewer typed, and the request that it means. */
import type { ApiName, ChatRequest, Message, Tool } from './apis/api.ts'

/** Texts of the fields. */
export interface Settings {
  readonly api: ApiName
  readonly model: string
  readonly system: string
  readonly temperature: string
  readonly maxTokens: string
  readonly seed: string
  readonly thinking: '' | 'on' | 'off'
  readonly tools: string
  readonly schema: string
  readonly isCached: boolean
}

export const defaultSettings: Settings = {
  api: 'openai',
  model: '',
  system: '',
  temperature: '',
  maxTokens: '',
  seed: '',
  thinking: '',
  tools: '',
  schema: '',
  isCached: true,
}

/** Messages about fields, by their names. */
export type SettingErrors = Partial<Record<keyof Settings, string>>

type Parsed<Value> = { readonly value: Value } | { readonly error: string }

/**
 * Returns the request, or what is wrong with the texts. The server checks the ranges of numbers, so that its messages
 * are seen here.
 */
export function toRequest(
  settings: Settings,
  messages: readonly Message[],
): { readonly request: ChatRequest } | { readonly errors: SettingErrors } {
  const parsed = {
    temperature: parseNumber(settings.temperature),
    maxTokens: parseNumber(settings.maxTokens),
    seed: parseNumber(settings.seed),
    tools: parseTools(settings.tools),
    schema: parseSchema(settings.schema),
  }
  const errors = Object.fromEntries(
    Object.entries(parsed).flatMap(([name, result]) => ('error' in result ? [[name, result.error]] : [])),
  )
  if (Object.keys(errors).length > 0) return { errors }
  const temperature = parsedValue(parsed.temperature)
  const maxTokens = parsedValue(parsed.maxTokens)
  const seed = parsedValue(parsed.seed)
  const schema = parsedValue(parsed.schema)
  return {
    request: {
      model: settings.model,
      messages,
      tools: parsedValue(parsed.tools) ?? [],
      isCached: settings.isCached,
      ...(settings.system.trim() !== '' && { system: settings.system }),
      ...(temperature !== undefined && { temperature }),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(seed !== undefined && { seed }),
      ...(settings.thinking !== '' && { isThinking: settings.thinking === 'on' }),
      ...(schema !== undefined && { schema }),
    },
  }
}

const parsedValue = <Value>(parsed: Parsed<Value>): Value | undefined =>
  'value' in parsed ? parsed.value : undefined

function parseNumber(text: string): Parsed<number | undefined> {
  if (text.trim() === '') return { value: undefined }
  const value = Number(text.trim().replace(',', '.'))
  return Number.isFinite(value) ? { value } : { error: 'Expected a number.' }
}

function parseSchema(text: string): Parsed<object | undefined> {
  const json = parseJson(text)
  if ('error' in json || json.value === undefined) return json as Parsed<undefined>
  return isRecord(json.value) ? { value: json.value } : { error: 'Expected a JSON Schema: an object.' }
}

/** Accepts one tool or a list of them, in the form of any of the three APIs. */
export function parseTools(text: string): Parsed<readonly Tool[]> {
  const json = parseJson(text)
  if ('error' in json) return json
  if (json.value === undefined) return { value: [] }
  const tools = [json.value].flat().map(toTool)
  const wrong = tools.indexOf(undefined)
  return wrong === -1
    ? { value: tools as readonly Tool[] }
    : { error: `Tool ${wrong + 1}: expected an object with name, description and parameters.` }
}

function toTool(value: unknown): Tool | undefined {
  if (!isRecord(value)) return undefined
  const tool = isRecord(value.function) ? value.function : value
  const { name, description } = tool
  const parameters = tool.parameters ?? tool.input_schema ?? { type: 'object', properties: {} }
  if (typeof name !== 'string' || name === '' || !isRecord(parameters)) return undefined
  return { name, ...(typeof description === 'string' && { description }), parameters }
}

function parseJson(text: string): Parsed<unknown> {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { error: `Not valid JSON: ${(error as Error).message}` }
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Example of a tool, which the tiny model knows. */
export const exampleTools = JSON.stringify(
  [
    {
      name: 'get_weather',
      description: 'Get the current weather of a city',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string', description: 'Name of the city' } },
        required: ['city'],
      },
    },
  ],
  null,
  2,
)

export const exampleSchema = JSON.stringify(
  {
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'integer' } },
    required: ['name', 'age'],
    additionalProperties: false,
  },
  null,
  2,
)
