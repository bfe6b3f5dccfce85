/** Checks the fields of the requests that the host app passes to the methods of `Llm`. The engine checks their values. */
import { checkFields, checkSignal, expected, expectRecord } from './check-fields.ts'
import { generateFields, inputFields, loadFields, samplingFields } from './request-fields.ts'

/** Throws an `LlmError` `invalid_request` for an unknown field. */
export function checkRequest(request: unknown, fields: object, method: string): void {
  const { load } = checkRecord(request, 'request', fields, { kind: `field of ${method}()`, hints })
  checkFieldsOf(load, 'load', loadFields)
}

export function checkGenerateRequest(given: unknown, method: string): void {
  checkRequest(given, generateFields, method)
  const request = given as Record<string, unknown>
  const input = expectRecord(request.input, 'input', inputForms)
  const { kind } = input
  if (typeof kind !== 'string' || !Object.hasOwn(inputFields, kind))
    throw expected('input.kind', "'chat', 'text' or 'infill'", kind)
  checkFieldsOf(input, 'input', inputFields[kind as keyof typeof inputFields])
  // The steps before the engine read these lists.
  if (kind === 'chat' || input.messages !== undefined) checkMessages(input.messages)
  if (kind === 'text' && !Array.isArray(input.prompt)) throw expected('input.prompt', 'a list', input.prompt)
  checkFieldsOf(request.sampling, 'sampling', samplingFields)
  checkFieldsOf(request.defaultSampling, 'defaultSampling', samplingFields)
}

/** Throws an `LlmError` `invalid_request` for an unknown option. */
export function checkCallOptions(options: unknown, fields: object, method: string): void {
  const { signal } = checkRecord(options, 'options', fields, {
    kind: `option of ${method}()`,
    hints: optionHints,
  })
  checkSignal(signal)
}

function checkFieldsOf(value: unknown, param: string, fields: object): void {
  if (value !== undefined) checkRecord(value, param, fields, { at: param, kind: 'field' })
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages)) throw expected('input.messages', 'a list', messages)
  for (const [index, message] of messages.entries()) {
    const { content } = expectRecord(message, `input.messages[${index}]`)
    if (!Array.isArray(content))
      throw expected(
        `input.messages[${index}].content`,
        "a list such as [{ type: 'text', text: 'Hi' }]",
        content,
      )
  }
}

function checkRecord(
  value: unknown,
  param: string,
  fields: object,
  check: Parameters<typeof checkFields>[2],
): Record<string, unknown> {
  const record = expectRecord(value, param)
  checkFields(record, fields, check)
  return record
}

const inputForms = "{ kind: 'chat', messages } or { kind: 'text', prompt: ['…'] }"

/** Names of other APIs, and fields that are elsewhere. */
const hints = {
  ...Object.fromEntries(Object.keys(samplingFields).map((name) => [name, `sampling: { ${name} }`])),
  messages: "input: { kind: 'chat', messages }",
  prompt: "input: { kind: 'text', prompt: ['…'] }",
  tools: "input: { kind: 'chat', messages, tools }",
  docs: 'documents',
  ...{ schema: 'format', response_format: 'format', max_tokens: 'maxTokens', think: 'reasoning' },
  signal: 'the second argument, { signal }',
  caller: 'the second argument, { caller }',
}
const optionHints = { abortSignal: 'signal', user: 'endUser' }
