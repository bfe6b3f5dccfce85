/** How far behind a reader is: both sides count the tokens of events alike. */
import type { GenerateEvent } from '../../events.ts'

export const countEventTokens = (event: GenerateEvent): number =>
  'tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0
