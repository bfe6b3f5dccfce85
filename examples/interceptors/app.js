/** An app with interceptors: it records all calls, redacts answers, and answers from its own documents. */
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { createAudit } from './audit.js'
import { redaction } from './redaction.js'
import { createRetrieval } from './retrieval.js'

/** In your app, a search index or a database with vectors finds them. */
const documents = ['The shop is open from 9 to 17.', 'A parcel to Norway takes five days.']

const search = async (question) =>
  documents.filter((document) => wordsOf(document).some((word) => wordsOf(question).includes(word)))

/** Words with more than four letters. */
const wordsOf = (text) => text.toLowerCase().match(/\p{L}{5,}/gu) ?? []

/** @param writeRow stores a row of the audit log */
export const createInterceptors = (writeRow) => [createAudit(writeRow), redaction, createRetrieval(search)]

export const createApp = (llm) => express().use('/llm', llmRouter(llm))
