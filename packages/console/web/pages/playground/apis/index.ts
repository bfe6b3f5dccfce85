/** The APIs of the playground. */
import { anthropic } from './anthropic.ts'
import type { Api, ApiName } from './api.ts'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'

export const apis: Readonly<Record<ApiName, Api>> = { openai, anthropic, ollama }
