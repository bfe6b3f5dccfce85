// A model process of an older version, on a machine with `FREE_BYTES` bytes of free memory.
import './older-version.mjs'

await import('./full-machine.mjs')
