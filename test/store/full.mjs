/**
 * Writes a small blob, a blob of BYTES bytes and a small blob, and prints each outcome:
 * `node full.mjs FOLDER BYTES`.
 */
import { createHash } from 'node:crypto'
import { createLlm } from '@modelmount/core'

const [, , folder, bytes] = process.argv
const llm = await createLlm({ models: folder })
const outcomes = []
for (const size of [1_000, Number(bytes), 2_000]) {
  const blob = Buffer.alloc(size, size % 251)
  const digest = `sha256:${createHash('sha256').update(blob).digest('hex')}`
  const written = llm.models.blobs.write(digest, inPieces(blob), new AbortController().signal)
  outcomes.push(
    await written.then(
      () => 'written',
      ({ name, code, message }) => `${name} ${code}: ${message}`,
    ),
  )
}
process.stdout.write(JSON.stringify(outcomes))
await llm.close()

async function* inPieces(blob) {
  for (let at = 0; at < blob.length; at += 65_536) yield blob.subarray(at, at + 65_536)
}
