/** Backpressure: the app and the model process count the tokens of an event alike. */
import type { GenerateEvent } from '../../events.ts'

export const countEventTokens = (event: GenerateEvent): number =>
  'tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0
