/** What the engine says of a field is said of the one that it came from, which is another one in each route. */
import { LlmError } from '../../errors.ts'
import type { Handler } from '../dialect.ts'
import { inNames } from '../fields.ts'

type ToOwnName = ReturnType<typeof inNames>

/** Of completions and vectors. */
export const usualNames = inNames([
  [/^format\.source/, 'grammar'],
  [/^format\.schema/, 'response_format.json_schema.schema'],
  [/^format(?=$|\.)/, 'response_format'],
  [/^(tools\[\d+\])\.parameters/, '$1.function.parameters'],
  [/^inputs(?=\[)/, 'input'],
])

/** Of responses, which have no envelope around a function or a schema. */
export const responseNames = inNames([
  [/^format\.source/, 'grammar'],
  [/^format(?=$|\.)/, 'text.format'],
])

/** A handler whose errors name the fields of its own route. */
export const naming =
  (toOwnName: ToOwnName, handler: Handler): Handler =>
  async (call) => {
    const named = (cause: unknown): LlmError => {
      const error = LlmError.from(cause)
      const { code, message, details } = error
      const param = details.param === undefined ? undefined : toOwnName(details.param)
      return param === details.param
        ? error
        : new LlmError(code, message, { ...details, ...(param !== undefined && { param }) })
    }
    try {
      return await handler({ ...call, onError: (error) => call.onError(named(error)) })
    } catch (cause) {
      throw named(cause)
    }
  }
