// Pulls one model into a new folder, and reports the time and the peak memory of this process.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'

const [name] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'pull-'))
const llm = await createLlm({ models: folder, store: { privateRegistries: [name.split('/')[0]] } })
const startedAt = performance.now()
for await (const { status } of llm.models.pull(name, { insecure: true }))
  if (status === 'success') process.send({ ms: performance.now() - startedAt, peakMb: peakMb() })
await llm.close()
rmSync(folder, { recursive: true })
process.disconnect()

/** NaN on systems without /proc. */
function peakMb() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1_024
  } catch {
    return Number.NaN
  }
}
