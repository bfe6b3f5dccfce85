import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { expectNoLeaks } from './leaks.ts'

/**
 * Creates an empty folder, for example for the option `models`: then only the built-in model exists. Removes
 * the folder after the tests of the surrounding file or `describe`, and fails if it contains leaks.
 */
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
