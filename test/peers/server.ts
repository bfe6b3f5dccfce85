/** Starts Modelmount with the flags of llama-server. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Caller, createLlm, type LlmOptions, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { listen } from '../support/listen.ts'
import { type Flags, parseFlags } from './flags.ts'
import { serveLlamaServerApi } from './proxy.ts'
import { withChanges } from './stand-ins.ts'

export interface Starter {
  readonly port: number
  close(): Promise<void>
}

/**
 * Listens for `modelmount-server.py`, which sends flags as a line of JSON. Its server runs until it disconnects.
 * @param sources llama.cpp's source tree, which relative paths of flags refer to
 */
export async function listenForStarts(sources: string): Promise<Starter> {
  const running = new Set<Promise<void>>()
  const server = createServer((socket) => {
    const run = runServer(socket, sources).catch((error: unknown) => void socket.end(String(error)))
    running.add(run)
    void run.finally(() => running.delete(run))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { readonly port: number }).port,
    close: async () => {
      server.close()
      await Promise.all(running)
    },
  }
}

async function runServer(socket: Socket, sources: string): Promise<void> {
  const disconnected = new Promise((resolve) => socket.once('close', resolve))
  // A killed process resets its connection.
  socket.on('error', () => {})
  const [line] = (await once(createInterface(socket), 'line')) as [string]
  const flags = parseFlags(JSON.parse(line) as readonly string[])
  const folder = mkdtempSync(join(tmpdir(), 'peer-'))
  const close = await start(flags, folder, sources).catch((error: unknown) => {
    rmSync(folder, { recursive: true })
    throw error
  })
  await disconnected
  await close()
  rmSync(folder, { recursive: true })
}

/** Resolves with a function that stops the server. */
async function start(flags: Flags, folder: string, sources: string): Promise<() => Promise<void>> {
  const model = nameOf(flags)
  if (flags.model) addModel(join(folder, `${model}.gguf`), flags, sources)
  const llm = await createLlm(toOptions(flags, folder))
  // llama-server has one model, so the caller does not see the built-in one.
  const caller: Caller = { id: 'tests', models: [model] }
  const key = flags['api-key']
  const authenticate = ({ headers }: { readonly headers: IncomingHttpHeaders }): Caller | undefined =>
    key === undefined || keyOf(headers) === key ? caller : undefined
  const routes = routesFor(undefined, { llamaServerRoutes: true })
  const app = await listen(toNodeHandler(routes, llm, flags.model ? { authenticate } : {}))
  const stop = async (): Promise<void> => {
    await app.close()
    await llm.close()
  }
  try {
    if (flags.model) await llm.load(model)
    const proxy = await serveLlamaServerApi(app.url, { model, flags })
    return async () => {
      await proxy.close()
      await stop()
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Creates the file of the model. llama.cpp's pooling and template are flags, and ours are metadata of the file. */
function addModel(path: string, flags: Flags, sources: string): void {
  const { model = '' } = flags
  const changed = withChanges(model, flags, join(sources, 'tools/server/tests'))
  if (changed) writeFileSync(path, changed)
  else symlinkSync(model, path)
}

function toOptions(flags: Flags, folder: string): LlmOptions {
  const numberOf = (name: string): number => Number(flags[name] ?? Number.NaN)
  const parallel = numberOf('parallel') || 1
  const total = numberOf('ctx-size')
  const maxTokens = numberOf('n-predict')
  return {
    models: flags.model ? join(folder, `${nameOf(flags)}.gguf`) : folder,
    auth: flags.model ? 'host' : 'anonymous',
    // llama-server's default is every page, and ours are those of this machine.
    ...(flags['cors-origins'] !== 'localhost' && { origins: [flags['cors-origins'] ?? '*'] }),
    local: {
      parallel,
      // Without a number, each load measures the fastest one.
      threads: 1,
      // With a unified KV cache, one sequence can use the context of all.
      ...(total > 0 && { contextSize: 'kv-unified' in flags ? total : Math.floor(total / parallel) }),
    },
    modelSettings: {
      '*': {
        temperature: numberOf('temp'),
        seed: numberOf('seed'),
        // -1 is no limit.
        ...(maxTokens > 0 && { maxTokens }),
      },
    },
  }
}

const nameOf = ({ alias = 'model' }: Flags): string => alias

const keyOf = (headers: IncomingHttpHeaders): string | undefined =>
  headers['x-api-key']?.toString() ?? headers.authorization?.replace(/^Bearer /, '')
