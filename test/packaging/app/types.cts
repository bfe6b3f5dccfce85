/** Type test of an app in CommonJS. This file is compiled but never run. */
import { createServer } from 'node:http'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { modelPath } from '@modelmount/tiny-model'

import express = require('express')

async function main(): Promise<void> {
  const llm = await createLlm({ engine: scriptedEngine('Hello there.'), models: modelPath })
  express().use(llmRouter(llm))
  createServer(toNodeHandler(routesFor(), llm))
  for await (const { data } of readEvents('data: {}\n\n')) JSON.parse(data)
}

main()
