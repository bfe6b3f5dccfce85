// A model process on a machine with little memory. For a context of more than 1,024 tokens, it may allocate
// only 48 MiB more than it has at its start.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const { contextSize } = JSON.parse(process.argv[2])
if (contextSize > 1_024) {
  const [, kilobytes] = /^VmData:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))
  const bytes = (Number(kilobytes) + 48 * 1_024) * 1_024
  execFileSync('prlimit', ['--pid', String(process.pid), `--data=${bytes}`])
}
await import('@modelmount/core/model-process')
