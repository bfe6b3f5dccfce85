/** The entry point `@modelmount/core/batches`: types for code that works with batches and files. */
export type {
  Batch,
  BatchCounts,
  BatchFormat,
  BatchOwner,
  BatchProblem,
  BatchStatus,
  CreateBatchOptions,
  ItemOutcome,
} from './batch.ts'
export type {
  BatchActions,
  BatchPage,
  BatchQuery,
  BatchResult,
  FileActions,
  FileSettings,
} from './batch-actions.ts'
export type { FilePage, FileQuery, StoredFile } from './files/file.ts'
