import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { expectNoLeaks } from './leaks.ts'

/** For the `models` option: then only the built-in model is there. Removed after the tests around the call. */
export function emptyFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'modelmount-'))
  afterAll(() => {
    try {
      expectNoLeaks(path)
    } finally {
      rmSync(path, { recursive: true, maxRetries: 5 })
    }
  })
  return path
}
