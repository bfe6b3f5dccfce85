/** Reads and validates a request body. */
import type * as z from 'zod'
import type { HttpRequest } from '../../http/message.ts'
import { parse } from '../parse.ts'
import { createIssueFormatter } from './issue-formatter.ts'

/** @param shapeName name of the body's Go type in Ollama, such as `ChatRequest`, for error messages */
export const readBody = async <Schema extends z.ZodType>(
  request: HttpRequest,
  schema: Schema,
  shapeName: string,
): Promise<z.output<Schema>> => parse(schema, await request.json(), createIssueFormatter(shapeName))
