/** Each line of Express that the adapter takes, with the adapter as it is beside it. */
import express5 from 'express'
import express4 from 'express4'
import { vi } from 'vitest'

export const expresses = [
  { version: 4, express: express4, llmRouter: await adapterBeside(express4) },
  { version: 5, express: express5, llmRouter: await adapterBeside(express5) },
] as const

/** An app has one Express; here the adapter is loaded once for each, and imports its `Router`. */
async function adapterBeside(express: typeof express5) {
  vi.resetModules()
  vi.doMock('express', () => ({ default: express, Router: express.Router }))
  const { llmRouter } = await import('../../packages/express/src/router.ts')
  return llmRouter
}
