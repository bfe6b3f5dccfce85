import { llmRouter } from '@modelmount/express'
import express from 'express'
import { conformanceSuite, hostApp } from './suite.ts'

conformanceSuite('Express 5', (llm, { prefix = '/', ...options }) =>
  express().use(prefix, llmRouter(llm, options)).use(hostApp),
)
