/** `modelmount serve --console` in a process of its own, with the real engine and API keys. */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const command = fileURLToPath(new URL('../../packages/cli/bin/modelmount.js', import.meta.url))
const tiny = createRequire(import.meta.url).resolve('@modelmount/tiny-model/tiny-chat.gguf')

export interface ServedConsole {
  readonly pid: number
  /** The printed link, which logs in once. */
  readonly link: string
  /** Of the server, without a slash at its end. */
  readonly url: string
  close(): Promise<void>
}

/** @param data folder of the database. Several servers may share it */
export async function serveConsole(data: string, flags: readonly string[] = []): Promise<ServedConsole> {
  const all = ['--console', '--auth', 'keys', '--port', '0', '--data', data, ...flags]
  const server = spawn(process.execPath, [command, 'serve', '--model', tiny, ...all], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  let link = ''
  for await (const line of createInterface({ input: server.stdout })) {
    ;[, link = ''] = /^Console: (\S+)/.exec(line) ?? []
    if (link) break
  }
  return {
    pid: server.pid ?? 0,
    link,
    url: new URL(link).origin,
    close: () => {
      server.kill()
      return ended
    },
  }
}
