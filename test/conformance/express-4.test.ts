import { llmRouter } from '@modelmount/express'
import express from 'express'
import { vi } from 'vitest'
import { conformanceSuite, hostApp } from './suite.ts'

// The adapter imports `Router` from 'express', so it gets Express 4, too.
vi.mock('express', () => import('express4'))

conformanceSuite('Express 4', (llm, { prefix = '/', ...options }) =>
  express().use(prefix, llmRouter(llm, options)).use(hostApp),
)
