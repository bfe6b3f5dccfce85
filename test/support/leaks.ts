/** Whole secrets of keys, and words of prompts, where nobody may write them: in what a run prints and logs, and in files and databases. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Whoever puts it into a prompt finds out whether that is written anywhere. */
export const promptCanary = 'xq7-canary-of-a-prompt-7qx'

/** The public half of a secret opens nothing, and may be written: it is the hint of its key. */
const leak = new RegExp(`sk-mm-[\\da-f]{16}-[\\w-]{43}|${promptCanary}`, 'g')

/** What was found, so short that to print it is no leak. */
export const leaksIn = (text: string): readonly string[] =>
  [...text.matchAll(leak)].map(([found]) => `${found.slice(0, 16)}…`)

/** In the bytes of all files of a folder: logs, databases with their journals, and what else lies there. */
export function leaksUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    return leaksIn(textOf(join(folder, name))).map((found) => `${name}: ${found}`)
  })
}

function textOf(path: string): string {
  try {
    const file = statSync(path)
    // What is larger is a model, or the state of one.
    return file.isFile() && file.size <= 2 ** 25 ? readFileSync(path, 'latin1') : ''
  } catch (cause) {
    // A process that leaves just now takes its files with it.
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw cause
  }
}

export function expectNoLeaks(folder: string): void {
  const leaks = leaksUnder(folder)
  if (leaks.length > 0) throw new Error(`A secret or a prompt was written:\n${leaks.join('\n')}`)
}
