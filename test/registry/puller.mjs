// Pulls one model into a folder: puller.mjs CORE_DIST FOLDER NAME [PART_BYTES]. Tests kill this process, or
// run several at once.
const [core, root, name, partBytes] = process.argv.slice(2)
const { BlobStore } = await import(`${core}/models/ollama-store/blobs.js`)
const { ManifestStore } = await import(`${core}/models/ollama-store/manifests.js`)
const { Transfers } = await import(`${core}/models/registry/transfer.js`)

const host = name.split('/')[0]
const policy = {
  stallMs: 30_000,
  pauseMs: 100,
  maxFailures: 6,
  ...(partBytes && { partBytes: Number(partBytes) }),
}
const blobs = new BlobStore([root])
const manifests = new ManifestStore([root], blobs)
const registries = { hosts: [], privateHosts: [host], policy }
const transfers = new Transfers({ blobs, manifests, registries, prune: true })
const { signal } = new AbortController()
for await (const event of transfers.pull(name, { signal, insecure: true })) process.send?.(event)
process.disconnect?.()
