/** Runs the tests that examples/nest-production has for Jest, without Jest. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'

Object.assign(globalThis, { afterEach, expect, test })

await import(join(root, 'examples/nest-production/app.test.ts'))
