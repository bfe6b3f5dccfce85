import { upstreamConformance } from './behind-upstream.ts'
import { notOverAnthropic } from './not-over-anthropic.ts'

upstreamConformance('anthropic', notOverAnthropic)
