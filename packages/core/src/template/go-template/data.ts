/** Builds the data of templates. Modelled on Ollama's `template/template.go` and `api/types.go`. */
import type { Tool } from '../../engine/request.ts'
import type { TemplateMessage } from '../template-message.ts'
import { fromJson, type GoField, GoMap, GoStruct, type GoValue, maxDepth } from './values.ts'

/** A conversation in which consecutive messages of the same role, except tool results, are joined. */
export interface CollatedConversation {
  /** All system messages, joined. */
  readonly system: string
  readonly messages: readonly TemplateMessage[]
}

export function collate(messages: readonly TemplateMessage[]): CollatedConversation {
  const joined: TemplateMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last && last.role === message.role && message.role !== 'tool')
      joined.splice(-1, 1, joinMessages(last, message))
    else joined.push(message)
  }
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
  return { system: system.join('\n\n'), messages: joined }
}

function joinMessages(first: TemplateMessage, second: TemplateMessage): TemplateMessage {
  const content = [first.content, second.content].filter((text) => text !== '').join('\n\n')
  const thinking = [first.thinking ?? '', second.thinking ?? ''].filter((text) => text !== '').join('\n\n')
  const calls = [...(first.tool_calls ?? []), ...(second.tool_calls ?? [])]
  return {
    ...{ role: first.role, content },
    ...(thinking !== '' && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

const field = (value: GoValue, key: string): GoField => ({ value, key })
const optional = (value: GoValue, key: string): GoField => ({ value, key, omitEmpty: true })

export const toMessage = (message: TemplateMessage): GoStruct => {
  const { role, content, thinking = '', tool_calls: calls = [], tool_call_id: id = '', name = '' } = message
  return new GoStruct({
    Role: field(role, 'role'),
    Content: field(content, 'content'),
    Thinking: optional(thinking, 'thinking'),
    Images: optional([], 'images'),
    ToolCalls: optional(
      calls.map((call, index) => toCall(call, index)),
      'tool_calls',
    ),
    ToolName: optional(name, 'tool_name'),
    ToolCallID: optional(id, 'tool_call_id'),
  })
}

const toCall = (
  { id, function: call }: NonNullable<TemplateMessage['tool_calls']>[number],
  index: number,
): GoStruct =>
  new GoStruct({
    ID: optional(id, 'id'),
    Function: field(
      new GoStruct({
        Index: field(BigInt(index), 'index'),
        Name: field(call.name, 'name'),
        Arguments: field(
          typeof call.arguments === 'string' ? call.arguments : fromJson(call.arguments, { isJson: true }),
          'arguments',
        ),
      }),
      'function',
    ),
  })

/** Keeps only the schema keywords that exist in Ollama's types. */
export const toTool = ({ name, description = '', parameters }: Tool): GoStruct =>
  new GoStruct(
    {
      Type: field('function', 'type'),
      Items: optional(null, 'items'),
      Function: field(
        new GoStruct({
          Name: field(name, 'name'),
          Description: optional(description, 'description'),
          Parameters: field(toParameters(parameters as ParameterSchema), 'parameters'),
        }),
        'function',
      ),
    },
    { isJson: true },
  )

interface ParameterSchema {
  readonly type?: unknown
  readonly $defs?: unknown
  readonly items?: unknown
  readonly required?: unknown
  readonly properties?: unknown
  readonly anyOf?: unknown
  readonly description?: unknown
  readonly enum?: unknown
}

const toParameters = ({ type = 'object', $defs, items, required, properties }: ParameterSchema): GoStruct =>
  new GoStruct({
    Type: field(typeof type === 'string' ? type : 'object', 'type'),
    Defs: optional(fromJson($defs), '$defs'),
    Items: optional(fromJson(items), 'items'),
    Required: optional(filterStrings(required), 'required'),
    Properties: field(toProperties(properties ?? {}), 'properties'),
  })

const toProperties = (properties: unknown, depth = 0): GoValue =>
  typeof properties === 'object' && properties !== null && depth < maxDepth
    ? new GoMap(
        Object.entries(properties).map(([name, schema]) => [name, toProperty(schema, depth + 1)] as const),
        { isJson: true },
      )
    : null

function toProperty(schema: unknown, depth: number): GoValue {
  if (typeof schema !== 'object' || schema === null) return new GoStruct({}, { isJson: true })
  const { anyOf, type, items, description, enum: values, properties, required }: ParameterSchema = schema
  const choices = Array.isArray(anyOf) && depth < maxDepth ? anyOf : []
  return new GoStruct(
    {
      AnyOf: optional(
        choices.map((choice) => toProperty(choice, depth + 1)),
        'anyOf',
      ),
      Type: optional(typeof type === 'string' ? type : filterStrings(type), 'type'),
      Items: optional(fromJson(items), 'items'),
      Description: optional(typeof description === 'string' ? description : '', 'description'),
      Enum: optional(Array.isArray(values) ? fromJson(values) : [], 'enum'),
      Properties: optional(toProperties(properties, depth), 'properties'),
      Required: optional(filterStrings(required), 'required'),
    },
    { isJson: true },
  )
}

const filterStrings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
