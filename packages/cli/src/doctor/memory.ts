/** Checks the free memory within the limit of the container, and the RAM disk for cached prompts. */
import { totalmem } from 'node:os'
import type { MachineReport } from '@modelmount/core/machine'
import { humanBytes } from '../format/human.ts'
import { type Finding, findingsOf, quoted } from './finding.ts'

const memory = findingsOf('memory')
const ramDisk = findingsOf('RAM disk')

/** A small model of 1.5 billion parameters in 4 bits takes about this, with its context. */
const leastFreeBytes = 1.5e9

type WithMemory = Pick<MachineReport, 'memory'>

export function checkMemory({ memory: found }: WithMemory): Finding {
  if (!found) return memory.ok('Not checked, because the process that measures it does not start')
  const { freeBytes, totalBytes } = found
  const isLimited = totalBytes < totalmem()
  const text = `${humanBytes(freeBytes)} of ${humanBytes(totalBytes)} free${isLimited ? ', the limit of the container' : ''}`
  if (freeBytes >= leastFreeBytes) return memory.ok(text)
  return memory.warning(
    `${text}, which is too little for most models.`,
    isLimited
      ? 'docker update --memory 8g --memory-swap 8g CONTAINER'
      : 'ps -eo rss,pid,args --sort -rss | head',
  )
}

/** Linux only. Elsewhere, cached prompts are stored in the folder for temporary files. */
export function checkRamDisk({ memory: found }: WithMemory, isUsed: boolean): readonly Finding[] {
  if (!found || process.platform !== 'linux') return []
  if (!isUsed) return [ramDisk.ok('Not used, because the prompt cache is off')]
  const { path, freeBytes, requiredBytes } = found.ramDisk
  if (freeBytes >= requiredBytes) return [ramDisk.ok(`${humanBytes(freeBytes)} free in ${path}`)]
  return [
    ramDisk.warning(
      `${humanBytes(freeBytes)} free in ${path}, less than ${humanBytes(requiredBytes)}: cached prompts are stored in the folder for temporary files, which can slow all streams.`,
      `mount -o remount,size=4g ${quoted(path)}   # with Docker: docker run --shm-size 4g`,
    ),
  ]
}
