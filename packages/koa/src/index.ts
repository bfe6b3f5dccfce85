/** What users import. */
export { llmRouter, type RouterOptions } from './router.ts'
