/** The APIs that have batches. `create-llm.ts` loads them with the first batch. */
import type { BatchApi } from '../batches/batch-api.ts'
import { anthropicBatches } from './anthropic/batches/api.ts'
import { openaiBatches } from './openai/batches/api.ts'

export const batchApis: readonly BatchApi[] = [anthropicBatches, openaiBatches]
