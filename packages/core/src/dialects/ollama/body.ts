/** The body of a call, checked. */
import type * as z from 'zod'
import type { HttpRequest } from '../../http/message.ts'
import { parse } from '../parse.ts'
import { createIssueFormatter } from './issue-formatter.ts'

/** @param shapeName what Ollama calls the shape: its clients know it from messages */
export const readBody = async <Schema extends z.ZodType>(
  request: HttpRequest,
  schema: Schema,
  shapeName: string,
): Promise<z.output<Schema>> => parse(schema, await request.json(), createIssueFormatter(shapeName))
