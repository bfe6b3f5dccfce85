import { llmRouter } from '@modelmount/express'
import express from 'express'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Express 5', (llm) => express().use(llmRouter(llm, { unknownRoutes: 'error' })))
