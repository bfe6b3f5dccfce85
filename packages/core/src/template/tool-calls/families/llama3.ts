/**
 * Tool calls of Llama 3: the whole message is a JSON object. Some versions write a special token before it.
 */
import { createBareJsonParser } from './generic.ts'

export const llama3 = createBareJsonParser({ '<|python_tag|>': '' })
