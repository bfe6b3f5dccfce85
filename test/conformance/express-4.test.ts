import { llmRouter } from '@modelmount/express'
import express from 'express'
import { vi } from 'vitest'
import { conformanceSuite } from './suite.ts'

// The adapter gets its `Router` from here, too.
vi.mock('express', () => import('express4'))

conformanceSuite('Express 4', (llm, authenticate) =>
  express().use(llmRouter(llm, { unknownRoutes: 'error', authenticate })),
)
