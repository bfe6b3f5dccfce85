/** Checks the folder in which apps and model processes find each other, and the folder for temporary files. */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { MachineReport, RuntimeDirProblem } from '@modelmount/core/machine'
import { humanBytes } from '../format/human.ts'
import { canWrite } from './access.ts'
import { type Finding, findingsOf, quoted } from './finding.ts'

const { ok, warning, problem } = findingsOf('runtime folder')

/** Logs, sockets and, without a RAM disk, cached prompts need some space. */
const leastFreeBytes = 64e6

export function checkRuntimeFolder({
  runtimeDir: { path, problem: found },
}: Pick<MachineReport, 'runtimeDir'>): Finding {
  const used = found === undefined ? path : tmpdir()
  if (!canWrite(used))
    return problem(
      `No model can be loaded, because neither ${path} nor ${tmpdir()} can be written.`,
      `sudo chmod 1777 ${quoted(tmpdir())}`,
    )
  const freeBytes = measureFree(used)
  if (freeBytes < leastFreeBytes)
    return problem(
      `The disk of ${used} has only ${humanBytes(freeBytes)} free.`,
      `du -xsh ${quoted(used)}/* | sort -h | tail`,
    )
  if (found === undefined) return ok(`${path} is private, ${humanBytes(freeBytes)} free`)
  const [reason, fix] = texts[found](path)
  return warning(`${path} ${reason}, so this app shares no loaded models with others.`, fix)
}

type ToTexts = (path: string) => readonly [reason: string, fix: string]

const texts: Readonly<Record<RuntimeDirProblem, ToTexts>> = {
  'too-long': () => [
    'is too long for the path of a socket',
    'Set `local.runtimeDir` in the file of --config to a path of at most 75 bytes.',
  ],
  unwritable: (path) => [
    'cannot be created or written',
    `sudo install -d -m 700 -o "$(id -un)" ${quoted(path)}`,
  ],
  'not-private': (path) => [
    'is not a private folder of this user',
    `sudo chown "$(id -un)" ${quoted(path)} && chmod 700 ${quoted(path)}`,
  ],
}

function measureFree(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
