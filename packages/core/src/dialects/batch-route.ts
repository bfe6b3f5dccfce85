import type { Handler } from './dialect.ts'

/** Wraps a handler of batches or files. Its requests are counted apart from those to models. */
export const batchRoute =
  (handler: Handler): Handler =>
  async (call, app) => {
    await call.llm.admitRequest('batch')
    return handler(call, app)
  }
