/** Implements `modelmount batch`. */
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { PageOptions } from '../commands/options/page-options.ts'
import { nameFlags } from '../flags.ts'
import { humanBytes } from '../format/human.ts'
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { noteNextPage, print } from '../output.ts'
import { type Server, type ServerOptions, withRunningServer } from '../server.ts'
import { anthropicApi } from './anthropic.ts'
import type { BatchApi, BatchState } from './batch-api.ts'
import { describeBatch, listBatches, toJson } from './describe.ts'
import { listAll } from './list.ts'
import { openaiApi } from './openai.ts'
import { openRequests, type RequestLine, type RequestLines } from './request-lines.ts'
import { waitForEnd } from './watch.ts'

export interface BatchCommandOptions extends Pick<ServerOptions, 'host'> {
  /** Whether to wait until the batch has ended. */
  readonly wait?: boolean
  readonly json?: boolean
}

export interface ResultsOptions extends BatchCommandOptions {
  /** @default stdout */
  readonly output?: string
  /** Whether to replace an existing file. */
  readonly force?: boolean
}

/** Prints the id on stdout, and progress on stderr. @param file `-` for stdin */
export async function submit(file: string, { wait = false, ...options }: BatchCommandOptions): Promise<void> {
  const requests = await openRequests(file)
  const api = requests.format === 'openai' ? openaiApi : anthropicApi
  await withServerOf(options, async (server) => {
    const { id } = await upload(server, api, requests)
    print(`${id}\n`)
    if (wait) expectRun(await waitForEnd(server, api, id, process.stderr))
  })
}

export const status = (
  id: string,
  { wait = false, json = false, ...options }: BatchCommandOptions,
): Promise<void> =>
  withServerOf(options, async (server) => {
    const api = apiOf(id)
    const batch = wait ? await waitForEnd(server, api, id, process.stderr) : await api.get(server, id)
    print(json ? toJson(batch) : describeBatch(batch))
  })

export const list = ({
  limit,
  after,
  json = false,
  ...options
}: BatchCommandOptions & PageOptions): Promise<void> =>
  withServerOf(options, async (server) => {
    const page = await listAll(server, limit, after)
    print(json ? toJson(page) : listBatches(page))
    noteNextPage(page.length, limit, page.at(-1)?.id)
  })

export const results = (id: string, { output, force = false, ...options }: ResultsOptions): Promise<void> =>
  withServerOf(options, async (server) => {
    if (output !== undefined && !force && existsSync(output))
      throw new Error(`${output} exists. Name another file, or allow it to be replaced: --force.`)
    const lines = Readable.from(apiOf(id).results(server, id))
    if (output === undefined) return pipeline(lines, process.stdout, { end: false })
    // The file appears when it is complete.
    const part = `${output}.part`
    try {
      await pipeline(lines, createWriteStream(part))
      await rename(part, output)
    } catch (cause) {
      await rm(part, { force: true })
      throw cause
    }
    print(`Wrote the results of ${id} to ${output} (${humanBytes((await stat(output)).size)}).\n`)
  })

export const cancel = (id: string, options: BatchCommandOptions): Promise<void> =>
  withServerOf(options, async (server) => {
    const { isEnded } = await apiOf(id).cancel(server, id)
    print(isEnded ? `${id} has already ended.\n` : `Canceling ${id}. Requests that run already end.\n`)
  })

export const deleteBatch = (id: string, options: BatchCommandOptions): Promise<void> =>
  withServerOf(options, async (server) => {
    print(`Deleted ${await apiOf(id).delete(server, id)}.\n`)
  })

const withServerOf = (
  options: Pick<ServerOptions, 'host'>,
  work: (server: Server) => Promise<void>,
): Promise<void> => withRunningServer(options, work).catch(nameFlags)

/** Both Modelmount and the hosted APIs tell the API by the prefix. */
const apiOf = (id: string): BatchApi => (id.startsWith('batch_') ? openaiApi : anthropicApi)

/** Sends the requests. Shows a progress bar on a terminal. */
async function upload(
  server: Server,
  api: BatchApi,
  { lines, ...requests }: RequestLines,
): Promise<BatchState> {
  const { name, totalBytes: total } = requests
  let completed = 0
  let failure: unknown
  async function* read(): AsyncGenerator<RequestLine> {
    try {
      for await (const line of lines) {
        yield line
        completed = line.bytes
      }
    } catch (cause) {
      failure = cause
      throw cause
    }
  }
  // `fetch` hides why a body ended.
  const sent = api.submit(server, requests, read()).catch((cause: unknown) => {
    throw failure ?? cause
  })
  async function* progress(): AsyncGenerator<ProgressLine> {
    const isSent = sent.then(() => true)
    do yield { status: `uploading ${name}`, ...(total !== undefined && { total }), completed }
    while (!(await Promise.race([isSent, delay(progressIntervalMs, false, { ref: false })])))
  }
  if (process.stderr.isTTY) await showProgress(progress(), process.stderr)
  return sent
}

const progressIntervalMs = 100

/** Throws if the requests were invalid, so that none ran. */
function expectRun({ id, errors }: BatchState): void {
  const [first] = errors
  if (first === undefined) return
  const others = errors.length > 1 ? ` Also see the other errors: modelmount batch status ${id}` : ''
  throw new Error(`${id} has failed. ${first}${others}`)
}
