import { upstreamConformance } from './behind-upstream.ts'
import { notOverOllama } from './not-over-ollama.ts'

upstreamConformance('ollama', notOverOllama)
