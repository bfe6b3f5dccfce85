import type { StepCounter } from './model.ts'

/**
 * Counter for all work besides decoding, such as jobs of workers. While the model decodes, this work does not
 * count: it would hide that the decoder hangs.
 */
export const stepsBesideDecoding = (progress: StepCounter, isDecoding: () => boolean): StepCounter => ({
  get steps() {
    return progress.steps
  },
  set steps(steps) {
    if (!isDecoding()) progress.steps = steps
  },
})
