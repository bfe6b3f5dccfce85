/** Formats field errors like Go's `encoding/json` and Ollama's own checks. */
import type { FieldIssue, IssueFormatter } from '../parse.ts'

/** @param bodyName name of the body's Go type in Ollama, such as `ChatRequest` */
export const createIssueFormatter =
  (bodyName: string): IssueFormatter =>
  (problem) =>
    formatGoError(bodyName, problem) ??
    (hasCompleteReason(problem) ? problem.reason : formatFieldError(problem))

/** Formats Go's error for a value of a wrong JSON type. Returns `undefined` for other issues. */
function formatGoError(bodyName: string, { param, expected, received }: FieldIssue): string | undefined {
  const type = jsonTypeOf(received)
  if (expected === undefined || type === undefined || type === typeNames[expected]) return undefined
  if (param === '') return `json: cannot unmarshal ${type} into Go value of type api.${bodyName}`
  const [, option] = /^options\.(\w+)$/.exec(param) ?? []
  if (option !== undefined) return `option "${option}" must be of type ${optionType(option, expected)}`
  if (/^options\.stop\[/.test(param)) return 'option "stop" must be of an array of strings'
  const field = param.replaceAll(/\[\d+\]/g, '')
  const goType = (param.endsWith(']') ? itemOf(goTypes[field]) : goTypes[field]) ?? scalars[expected]
  if (goType === undefined) return undefined
  // For an integer field, Go's message contains the rejected number.
  const number = expected === 'int' && Number.isFinite(received) ? ` ${received}` : ''
  return `json: cannot unmarshal ${type}${number} into Go struct field ${bodyName}.${field} of type ${goType}`
}

/** Go's name for the JSON type of a value. */
function jsonTypeOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'boolean') return 'bool'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Go's names for JSON types, by their names in zod and in this package's checks. */
const typeNames: Readonly<Record<string, string>> = {
  ...{ string: 'string', boolean: 'bool', array: 'array', object: 'object', record: 'object' },
}
const scalars: Readonly<Record<string, string>> = { string: 'string', boolean: 'bool', int: 'int' }
const anything = 'map[string]interface {}'
const digests = 'map[string]string'
const goTypes: Readonly<Record<string, string>> = {
  messages: '[]api.Message',
  'messages.images': '[]api.ImageData',
  'messages.tool_calls': '[]api.ToolCall',
  images: '[]api.ImageData',
  tools: 'api.Tools',
  context: '[]int',
  ...{ options: anything, parameters: anything, info: anything },
  ...{ files: digests, adapters: digests },
}

/** Go type of an array's items: `api.Message` for `[]api.Message`, `api.Tool` for `api.Tools`. */
const itemOf = (type: string | undefined): string | undefined => type?.replace(/^\[\]|s$/, '')

function optionType(name: string, expected: string): string {
  if (expected !== 'number') return expected
  return /^temperature$|_p$|_penalty$/.test(name) ? 'float32' : 'integer'
}

/** Whether the check of a field already returns Ollama's complete message. */
const hasCompleteReason = ({ param, isCustom }: FieldIssue): boolean =>
  isCustom && ['format', 'input', 'keep_alive', 'think', 'top_logprobs'].includes(param)

function formatFieldError(problem: FieldIssue): string {
  const { param } = problem
  return param === ''
    ? 'the request body has to be a JSON object'
    : `invalid ${param}: ${formatReason(problem)}`
}

function formatReason({ issue, reason, isCustom, expected, limit }: FieldIssue): string {
  if (isCustom) return reason
  switch (issue) {
    case 'missing':
    case 'type':
      if (expected === undefined) return 'it has the wrong type.'
      return `expected ${/^[aeiou]/.test(expected) ? 'an' : 'a'} ${expected}.`
    case 'array_too_long':
      return `expected ${limit} items at most.`
    case 'string_too_long':
      return `expected ${limit} characters at most.`
    case 'integer_too_big':
    case 'decimal_too_big':
      return `expected ${limit} at most.`
    case 'integer_too_small':
    case 'decimal_too_small':
      return `expected ${limit} at least.`
    default:
      return 'expected a text that is not empty.'
  }
}
