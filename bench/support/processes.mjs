// CPU time and memory of process trees, from /proc. Not available on systems without /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Linux reports these times in hundredths of a second, independent of the kernel's own clock rate. */
const ticksPerSecond = 100

export const knowsProcesses = existsSync('/proc/self/stat')

/** Processes with these ids and their descendants, each once. */
export function trees(roots) {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => read(Number(id)))
  const found = new Set()
  const add = (id) => {
    if (found.has(id)) return
    found.add(id)
    for (const one of all) if (one.parent === id) add(one.id)
  }
  for (const root of roots) add(root)
  return all.filter(({ id }) => found.has(id))
}

/** User and system time so far, including children that have ended. */
export const cpuSeconds = (processes) => processes.reduce((sum, { cpu }) => sum + cpu, 0)

export const memoryBytes = (processes) =>
  processes.reduce((sum, { id }) => {
    const [, kilobytes = 0] = /^VmRSS:\s+(\d+)/m.exec(text(`/proc/${id}/status`)) ?? []
    return sum + Number(kilobytes) * 1_024
  }, 0)

export const commandOf = ({ id }) => text(`/proc/${id}/cmdline`).split('\0')

/** Busy time of all cores, including time that the hypervisor took (steal time). */
export function busySeconds() {
  const [user, nice, system, , , irq, softIrq, stolen = 0] = text('/proc/stat')
    .split('\n', 1)[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softIrq + stolen) / ticksPerSecond
}

/**
 * Empty if the process has just ended. The format is in `man proc_pid_stat`. Its second field may contain any
 * character.
 */
function read(id) {
  const stat = text(`/proc/${id}/stat`)
  if (stat === '') return []
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return [{ id, parent: Number(fields[1]), cpu: ticks / ticksPerSecond }]
}

function text(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
