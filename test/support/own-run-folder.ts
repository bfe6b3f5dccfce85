/** Each test file has model processes, and models, of its own: one that kills them must not meet those of another. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, vi } from 'vitest'
import { expectNoLeaks } from './leaks.ts'

const folder = mkdtempSync(join(tmpdir(), 'run-'))
process.env.XDG_RUNTIME_DIR = folder
// Nor is what somebody has at home any test's business.
process.env.OLLAMA_MODELS = join(folder, 'models')

afterAll(async () => {
  try {
    expectNoLeaks(folder)
  } finally {
    // A process that leaves just now may write its last record between two looks.
    await vi.waitFor(() => rmSync(folder, { recursive: true, force: true }), 10_000)
  }
})
