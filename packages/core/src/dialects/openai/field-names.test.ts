import { expect, test } from 'vitest'
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { RouteCall } from '../dialect.ts'
import {
  createBodyFieldMapper,
  mapCompletionField,
  mapResponsesField,
  withFieldNames,
} from './field-names.ts'

const names = { usual: mapCompletionField, response: mapResponsesField }

test.each<[keyof typeof names, param: string, field: string]>([
  ['usual', 'format', 'response_format'],
  ['usual', 'tools[12].parameters#/allOf', 'tools[12].function.parameters#/allOf'],
  ['usual', 'inputs[3]', 'input[3]'],
  ['usual', 'messages[0].role', 'messages[0].role'],
  ['usual', 'inputs', 'inputs'],
  ['usual', 'promptLogprobs', 'echo'],
  ['response', 'format.schema#/a', 'text.format.schema#/a'],
  ['response', 'tools[1].parameters', 'tools[1].parameters'],
])('with the %s names, the engine field %s is the field %s', (which, param, field) => {
  expect(names[which](param)).toBe(field)
})

test.each([
  ['format.schema#/a', 'guided_json', 'guided_json#/a'],
  ['format.schema#/a', 'response_format.json_schema.schema', 'response_format.json_schema.schema#/a'],
  ['format.source', 'grammar', 'grammar'],
  ['format.pattern', 'structured_outputs.regex', 'structured_outputs.regex'],
  ['format.choices[3]', 'guided_choice', 'guided_choice[3]'],
  ['format', 'structured_outputs.choice', 'structured_outputs.choice'],
  ['maxTokens', 'grammar', 'max_completion_tokens'],
])('%s of a request with the constraint %s is the field %s', (param, field, expected) => {
  const mapField = createBodyFieldMapper({ limit: 'max_completion_tokens', constraint: { field } })

  expect(mapField(param)).toBe(expected)
})

test('errors of a handler, thrown or in the stream, name the field of its route', async () => {
  const told: LlmError[] = []
  const call = { onError: (error: LlmError) => void told.push(error) } as unknown as RouteCall
  const failing = withFieldNames(mapCompletionField, async ({ onError }) => {
    onError(invalidRequest('Later.', { param: 'format' }))
    throw invalidRequest('No.', { param: 'inputs[0]', issue: 'value' })
  })

  await expect(failing(call)).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'No.',
    details: { param: 'input[0]', issue: 'value' },
  })
  expect(told).toMatchObject([{ message: 'Later.', details: { param: 'response_format' } }])
})
