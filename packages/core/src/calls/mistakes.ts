/** Separates mistakes of the host app from those of its clients, in errors of in-process calls. */
import { LlmError } from '../errors.ts'

/** Marks errors about options as mistakes of the host app, because its client sends at most texts and messages. */
export function markMistakes(cause: unknown): unknown {
  if (!LlmError.is(cause) || cause.code !== 'invalid_request') return cause
  const { code, message, details } = cause
  if (details.param === undefined || content.test(details.param)) return cause
  return new LlmError(code, message, { ...details, setup: true }, { cause })
}

/** Fields of requests that contain what a client has written. */
const content = /^(input|inputs|messages|prompt|prefix|suffix|query|documents|text|tokens)\b/

/** Lets each method reject with marked errors. */
export function markMistakesOf<Methods extends object>(methods: Methods): Methods {
  const marked = Object.entries(methods).map(([name, method]) => [
    name,
    async (...args: readonly unknown[]): Promise<unknown> => {
      try {
        return await method(...args)
      } catch (cause) {
        throw markMistakes(cause)
      }
    },
  ])
  return Object.fromEntries(marked)
}
