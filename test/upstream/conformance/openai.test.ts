import { upstreamConformance } from './behind-upstream.ts'
import { notOverOpenAI } from './not-over-openai.ts'

upstreamConformance('openai', notOverOpenAI)
