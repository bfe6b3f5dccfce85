/** Renders docs/reference/errors.md: each error code, and what the APIs make of it. */
import { LlmError, type LlmErrorCode, type LlmErrorDetails } from '@modelmount/core'
import { statusOf } from '@modelmount/core/adapter'
import { renderError as renderAdmin } from '../../packages/core/src/dialects/admin/errors.ts'
import { renderError as renderAnthropic } from '../../packages/core/src/dialects/anthropic/errors.ts'
import { renderError as renderOllama } from '../../packages/core/src/dialects/ollama/errors.ts'
import { renderError as renderOpenAi } from '../../packages/core/src/dialects/openai/errors.ts'
import type { HttpResponse } from '../../packages/core/src/http/message.ts'
import { block, code, page, table } from './table.ts'

interface ErrorKind {
  readonly meaning: string
  /** What the client, or else the operator, can do. */
  readonly remedy: string
  /** Of the rendered example. */
  readonly details?: LlmErrorDetails
}

const kinds: Readonly<Record<LlmErrorCode, ErrorKind>> = {
  invalid_request: {
    meaning: 'A field of the request is missing, wrong or not supported. `details.param` has its path.',
    remedy: 'Correct the field that the message names.',
    details: { param: 'temperature', issue: 'decimal_too_big' },
  },
  context_length: {
    meaning: 'The prompt does not fit into the context of the model.',
    remedy: 'Send fewer messages, or load the model with a larger context.',
    details: { inputTokens: 5_000, contextSize: 4_096 },
  },
  authentication: {
    meaning: 'The API key is missing or wrong, or the host app knows no caller.',
    remedy: 'Send a valid key.',
  },
  permission: {
    meaning: 'The caller lacks a scope or may not use the model, or the page is of another origin.',
    remedy: 'Ask for the scope or the model, or add the origin to `origins`.',
  },
  quota: {
    meaning: 'The spending limit of the caller is spent.',
    remedy: 'Wait for the next period, or ask for a higher limit. A retry does not help before.',
    details: { keyName: 'Reports', period: 'month' },
  },
  not_found: {
    meaning: 'The model, the id or the route does not exist.',
    remedy: 'Check the name. `GET /v1/models` lists the models.',
    details: { param: 'model', model: 'llama9' },
  },
  timeout: {
    meaning: 'The client paused for too long in the middle of the body.',
    remedy: 'Send the body without pauses.',
  },
  conflict: {
    meaning: 'The state does not allow the change, such as that of a revoked key.',
    remedy: 'Read the present state, and decide again.',
  },
  too_large: {
    meaning: 'The body, or the model, is larger than the limit.',
    remedy: 'Send less, or raise `bodyLimit` or `store.maxBytes`.',
  },
  rate_limit: {
    meaning: 'A rate limit does not admit the call, or too many batches or bodies wait.',
    remedy: 'Retry after the time in the header `retry-after`.',
    details: { exceeded: 'requests', retryAfterMs: 12_000 },
  },
  overloaded: {
    meaning: 'The queue is full, memory is short, or the app is closing.',
    remedy: 'Retry after the time in the header `retry-after`.',
    details: { retryAfterMs: 1_000 },
  },
  unavailable: {
    meaning: 'The database, or another part that the call needs, does not work.',
    remedy: 'Retry later. The log of the app has the cause.',
    details: { retryAfterMs: 1_000 },
  },
  upstream: {
    meaning: 'The model process, an upstream server or a registry has failed.',
    remedy: 'Retry. The log of the app has the cause.',
  },
  invalid_output: {
    meaning: 'Only in `llm.chat()`: the answer does not match the schema, or was cut off.',
    remedy: 'Raise `maxTokens`, or simplify the schema. `details.text` has the answer.',
  },
  internal: {
    meaning: 'A mistake in the server. Clients do not see its cause.',
    remedy: 'The log of the app has the cause.',
  },
  method_not_allowed: {
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use the methods of the header `allow`.',
  },
}

const codes = Object.keys(kinds) as readonly LlmErrorCode[]

/** Kinds of problems with one field. OpenAI's API has a code for each. */
const issues: Readonly<Record<NonNullable<LlmErrorDetails['issue']>, string>> = {
  missing: 'The field is required.',
  type: 'The value has another type.',
  value: 'The value is not one of those that are allowed.',
  empty: 'The list is empty.',
  array_too_long: 'The list is too long.',
  string_too_long: 'The text is too long.',
  decimal_too_big: 'The number is too large.',
  decimal_too_small: 'The number is too small.',
  integer_too_big: 'The whole number is too large.',
  integer_too_small: 'The whole number is too small.',
  unsupported: 'The field, or its value, is not supported.',
}

const errorOf = (code: LlmErrorCode, message = 'MESSAGE'): LlmError =>
  new LlmError(code, message, kinds[code].details)

const apis: Readonly<Record<string, (error: LlmError) => HttpResponse>> = {
  OpenAI: renderOpenAi,
  Anthropic: (error) => renderAnthropic(error, 'req_0123'),
  Ollama: renderOllama,
  'the admin API': renderAdmin,
}

const bodyOf = ({ body }: HttpResponse): Record<string, Record<string, string>> => JSON.parse(String(body))

export const renderErrorsPage = (): string =>
  page(
    '# Errors',
    'Every failure is an [`LlmError`](../guides/in-process.md) with a `code`, an HTTP `status` and `details`. Each API renders it in its own shape, with its own status. `LlmError.is(value)` finds one, also of another copy of the package.',
    '[Troubleshooting](../troubleshooting.md) lists messages and what to do about them.',
    '## Codes',
    'The status is that of routes of the host app, which its error handler sends.',
    table(
      ['code', 'status', 'meaning', 'what to do'],
      ...codes.map((name) => [code(name), `${statusOf(name)}`, kinds[name].meaning, kinds[name].remedy]),
    ),
    '`rate_limit`, `quota`, `overloaded` and `unavailable` have the header `retry-after` in whole seconds where the time is known.',
    '## In each API',
    table(
      ['code', 'OpenAI: status, `type`, `code`', 'Anthropic: status, `type`', 'Ollama: status'],
      ...codes.map((name) => {
        const [openAi, anthropic, ollama] = [renderOpenAi, apis.Anthropic ?? renderAdmin, renderOllama].map(
          (render) => render(new LlmError(name, 'MESSAGE')),
        )
        const { type, code: openAiCode } = bodyOf(openAi as HttpResponse).error ?? {}
        const anthropicType = bodyOf(anthropic as HttpResponse).error?.type
        return [
          code(name),
          `${openAi?.status}, ${code(String(type))}, ${openAiCode === null ? 'null' : code(String(openAiCode))}`,
          `${anthropic?.status}, ${code(String(anthropicType))}`,
          `${ollama?.status}`,
        ]
      }),
    ),
    'In OpenAI, an unknown model has the `code` `model_not_found`, and a rate limit has the kind of limit as its `type`, such as `tokens`. A wrong field has one of these codes:',
    table(
      ['`details.issue`', 'OpenAI: `code`', 'meaning'],
      ...Object.entries(issues).map(([issue, meaning]) => {
        const error = new LlmError('invalid_request', 'MESSAGE', { issue: issue as keyof typeof issues })
        return [code(issue), code(String(bodyOf(renderOpenAi(error)).error?.code)), meaning]
      }),
    ),
    'A stream that fails after its headers are sent ends with the same object, as its last event or line.',
    '## Shapes',
    ...Object.entries(apis).flatMap(([api, render]) => [
      `In ${api}, a wrong field and an unknown model are:`,
      ...[
        errorOf('invalid_request', 'Expected a number from 0 to 2, got 3.'),
        errorOf('not_found', "The model 'llama9' does not exist."),
      ].map((error) => block('json', JSON.stringify(bodyOf(render(error)), null, 2))),
    ]),
  )
