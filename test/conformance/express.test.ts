import { llmRouter } from '@modelmount/express'
import express from 'express'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Express 5', (llm, authenticate) =>
  express().use(llmRouter(llm, { unknownRoutes: 'error', authenticate })),
)
