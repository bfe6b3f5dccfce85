// A model process on a machine with `FREE_BYTES` bytes of free memory. Like any model process, it subtracts
// the memory that other model processes have reserved.
process.constrainedMemory = () => 0
process.availableMemory = () => Number(process.env.FREE_BYTES)
await import('@modelmount/core/model-process')
