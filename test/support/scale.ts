import { inject } from 'vitest'

/** Number of tries in a suite: `all` in `npm run test:long`, `sample` in the other test commands. */
export const times = (all: number, sample: number): number => (inject('isThorough') ? all : sample)
