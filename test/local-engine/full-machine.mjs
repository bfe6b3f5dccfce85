// The model process of a machine on which so many bytes are free, and what other model processes keep is theirs.
process.constrainedMemory = () => 0
process.availableMemory = () => Number(process.env.FREE_BYTES)
await import('@modelmount/core/model-process')
