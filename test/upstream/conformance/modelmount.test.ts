import { upstreamConformance } from './behind-upstream.ts'
import { notOverModelmount } from './not-over-modelmount.ts'

upstreamConformance('modelmount', notOverModelmount)
