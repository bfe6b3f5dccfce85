/**
 * Searches for leaks: complete secrets of API keys, or prompts, in printed text, logs, files and databases.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Tests put this text into prompts. The leak check finds it wherever a prompt is written. */
export const promptCanary = 'xq7-canary-of-a-prompt-7qx'

/** Matches a complete secret only. The public part of a secret may be written: it is the hint of its key. */
const leak = new RegExp(`sk-mm-[\\da-f]{16}-[\\w-]{43}|${promptCanary}`, 'g')

/** The leaks found, shortened to 16 characters each, so that printing them is no leak. */
export const leaksIn = (text: string): readonly string[] =>
  [...text.matchAll(leak)].map(([found]) => `${found.slice(0, 16)}…`)

/**
 * Leaks in the files of a folder, such as logs, and databases with their journals.
 *
 * @param isSearched whether to search a file, by its path in the folder. Default: all files
 */
export function leaksUnder(
  folder: string,
  isSearched: (name: string) => boolean = () => true,
): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(isSearched)
    .flatMap((name) => leaksIn(textOf(join(folder, name))).map((found) => `${name}: ${found}`))
}

function textOf(path: string): string {
  try {
    const file = statSync(path)
    // Files above 32 MiB are models or saved KV states.
    return file.isFile() && file.size <= 2 ** 25 ? readFileSync(path, 'latin1') : ''
  } catch (cause) {
    // A process that is ending removes its files.
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw cause
  }
}

export function expectNoLeaks(folder: string, isSearched?: (name: string) => boolean): void {
  const leaks = leaksUnder(folder, isSearched)
  if (leaks.length > 0) throw new Error(`A secret or a prompt was written:\n${leaks.join('\n')}`)
}
