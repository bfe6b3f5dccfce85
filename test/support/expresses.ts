/**
 * Each major version of Express that the adapter supports, with the adapter as it loads beside that version.
 */
import express5 from 'express'
import express4 from 'express4'
import { vi } from 'vitest'

export const expresses = [
  { version: 4, express: express4, llmRouter: await adapterBeside(express4) },
  { version: 5, express: express5, llmRouter: await adapterBeside(express5) },
] as const

/**
 * Loads a fresh copy of the adapter that imports `Router` from the given Express. An app has only one
 * Express.
 */
async function adapterBeside(express: typeof express5) {
  vi.resetModules()
  vi.doMock('express', () => ({ default: express, Router: express.Router }))
  const { llmRouter } = await import('../../packages/express/src/router.ts')
  return llmRouter
}
