import { inject } from 'vitest'

/** Number of tries: all in `npm run test:long`, a sample elsewhere. */
export const times = (all: number, sample: number): number => (inject('isThorough') ? all : sample)
