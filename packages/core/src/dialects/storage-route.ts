import type { Handler } from './dialect.ts'

/** Wraps a handler of batches, files or stored responses. Its requests are counted apart from those to models. */
export const storageRoute =
  (handler: Handler): Handler =>
  async (call, app) => {
    await call.llm.admitRequest('storage')
    return handler(call, app)
  }
