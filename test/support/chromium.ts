/** Starts Chromium from an npm package, so that tests of the console need no installed browser. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Elsewhere than on Linux x64, an installed Chrome. */
export async function launchChromium(): Promise<Browser> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return chromium.launch({ channel: 'chrome' })
  return chromium.launch({
    executablePath: await unpack(),
    // Root and containers have no sandbox and a small /dev/shm.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--font-render-hinting=none'],
  })
}

/** Unpacks Chromium once for all runs. The package would leave it half written to a test that starts meanwhile. */
async function unpack(): Promise<string> {
  const cache = join(root, 'node_modules/.cache/modelmount')
  const folder = join(cache, 'chromium')
  if (existsSync(folder)) return join(folder, 'chromium')
  mkdirSync(cache, { recursive: true })
  const partial = mkdtempSync(join(cache, 'unpacking-'))
  const script = "await (await import('@sparticuz/chromium')).default.executablePath()"
  const env = { ...process.env, TMPDIR: partial }
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: root, env })
  try {
    renameSync(partial, folder)
  } catch (cause) {
    // Another test was faster.
    rmSync(partial, { recursive: true })
    if (!existsSync(folder)) throw cause
  }
  return join(folder, 'chromium')
}
