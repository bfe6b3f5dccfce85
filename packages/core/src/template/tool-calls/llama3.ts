/** Llama 3: a JSON object as the whole message, after a special token in some versions. */
import { createBareJsonParser } from './generic.ts'

export const llama3 = createBareJsonParser({ '<|python_tag|>': '' })
