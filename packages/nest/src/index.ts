/** What users import. */
export type { LlmRouteOptions } from './llm.controller.ts'
export { LlmModule, type LlmModuleExtras, type LlmModuleOptions } from './llm.module.ts'
export type { LlmRequest } from './llm.request.ts'
export { InjectLlm, LLM } from './llm.tokens.ts'
