/**
 * Gives each test file a separate runtime folder and models folder. Otherwise, a test that kills model
 * processes could kill those of another test file.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, vi } from 'vitest'
import { expectNoLeaks } from './leaks.ts'

const folder = mkdtempSync(join(tmpdir(), 'run-'))
process.env.XDG_RUNTIME_DIR = folder
// Tests must not use the models in the user's home folder.
process.env.OLLAMA_MODELS = join(folder, 'models')

afterAll(async () => {
  try {
    expectNoLeaks(folder)
  } finally {
    // A process that is ending may still write a file while the folder is being removed.
    await vi.waitFor(() => rmSync(folder, { recursive: true, force: true }), 10_000)
  }
})
