/**
 * Starts an upload that never ends: `node upload.mjs FOLDER`. Prints a line after its first bytes are on
 * disk.
 */
import { createLlm } from '@modelmount/core'

const [, , folder] = process.argv
const llm = await createLlm({ models: folder })
await llm.models.blobs.write(`sha256:${'0'.repeat(64)}`, forever(), new AbortController().signal)

async function* forever() {
  yield Buffer.alloc(1024 * 1024)
  // The store asks for the next chunk after writing the one before.
  process.stdout.write('written\n')
  await new Promise(() => setInterval(() => {}, 60_000))
}
