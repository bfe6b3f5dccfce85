/** Llama 3: one JSON object is the whole message; some versions have a token in front. */
import { bareJson } from './generic.ts'

export const llama3 = bareJson({ '<|python_tag|>': '' })
