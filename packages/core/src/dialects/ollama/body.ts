/** The body of a call, checked. */
import type * as z from 'zod'
import type { HttpRequest } from '../../http/message.ts'
import { parse } from '../parse.ts'
import { wordingOf } from './issue-formatter.ts'

/** @param name what Ollama calls the shape: its clients know it from messages */
export const read = async <Schema extends z.ZodType>(
  request: HttpRequest,
  schema: Schema,
  name: string,
): Promise<z.output<Schema>> => parse(schema, await request.json(), wordingOf(name))
