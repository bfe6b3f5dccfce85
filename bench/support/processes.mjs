// What processes and all below them have used, from /proc. Where there is none, nobody knows.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Linux shows all times in hundredths of a second, whatever its own clock does. */
const ticksPerSecond = 100

export const knowsProcesses = existsSync('/proc/self/stat')

/** Processes with these ids and all below them, each once. */
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

/** User and system time so far, of children that have ended, too. */
export const cpuSeconds = (processes) => processes.reduce((sum, { cpu }) => sum + cpu, 0)

export const memoryBytes = (processes) =>
  processes.reduce((sum, { id }) => {
    const [, kilobytes = 0] = /^VmRSS:\s+(\d+)/m.exec(text(`/proc/${id}/status`)) ?? []
    return sum + Number(kilobytes) * 1_024
  }, 0)

export const commandOf = ({ id }) => text(`/proc/${id}/cmdline`).split('\0')

/** Of all cores together, with what a hypervisor took away. */
export function busySeconds() {
  const [user, nice, system, , , irq, softIrq, stolen = 0] = text('/proc/stat')
    .split('\n', 1)[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softIrq + stolen) / ticksPerSecond
}

/** Nothing when it has just ended. Shape: `man proc_pid_stat`, whose second field may hold anything. */
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
