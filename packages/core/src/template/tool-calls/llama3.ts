/** Llama 3: one JSON object is the whole message; some versions have a token in front. */
import { createBareJsonParser } from './generic.ts'

export const llama3 = createBareJsonParser({ '<|python_tag|>': '' })
