/** Counts the tokens of an event for backpressure. The app and the model process must count alike. */
import type { GenerateEvent } from '../../events.ts'

export const countEventTokens = (event: GenerateEvent): number =>
  'tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0
