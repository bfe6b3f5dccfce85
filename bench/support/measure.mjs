// Shared helpers of the benchmarks: servers, medians, tables, and a description of the machine.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const serverFile = fileURLToPath(new URL('server.mjs', import.meta.url))

/** Starts a contestant in a separate process. `probe()` returns one of its own measurements. */
export async function startServer(contestant, script, execArgv = []) {
  const child = fork(serverFile, [contestant, JSON.stringify(script)], { execArgv })
  const answer = async () => {
    const ended = new AbortController()
    const onExit = () => ended.abort(new Error(`The server of "${contestant}" has ended.`))
    child.once('exit', onExit)
    try {
      const [value] = await once(child, 'message', { signal: ended.signal })
      return value
    } finally {
      child.off('exit', onExit)
    }
  }
  const port = await answer()
  return {
    port,
    probe: (name) => {
      child.send(name)
      return answer()
    },
    stop: async () => {
      if (!child.connected) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

export const print = (text) => process.stdout.write(`${text}\n`)

/** Writes to stderr, so that progress is not a part of the results. */
export const printProgress = (text) => process.stderr.write(`${text}\n`)

/**
 * Prints the machine. Warns if other processes use it, measured for two seconds while this process is idle.
 */
export async function describeMachine() {
  const before = cpuTimes()
  await sleep(2_000)
  const after = cpuTimes()
  const busy = 1 - (after.idle - before.idle) / (after.all - before.all)
  const cpus = os.cpus()
  print(`Node ${process.versions.node}, ${os.platform()}, ${cpus.length} x ${cpus[0]?.model.trim()}`)
  if (busy > 0.05)
    print(`WARNING: other processes use ${percent(busy)} of the machine. The results are not reliable.`)
}

function cpuTimes() {
  const times = os.cpus().map((cpu) => cpu.times)
  const sum = (pick) => times.reduce((total, time) => total + pick(time), 0)
  return {
    idle: sum((time) => time.idle),
    all: sum((time) => time.user + time.nice + time.sys + time.irq + time.idle),
  }
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The first and the third quartile, as a measure of the spread between rounds. */
export function quartiles(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return [sorted[Math.floor((sorted.length - 1) / 4)], sorted[Math.ceil(((sorted.length - 1) * 3) / 4)]]
}

/** Prints a Markdown table, which can be copied into the README. */
export function printTable(head, rows) {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '--:')), ...rows]
  for (const cells of lines) print(`| ${cells.join(' | ')} |`)
  print('')
}

export const percent = (share) => `${Math.round(share * 100)} %`
