/** `modelmount list`: lists the models on disk. */
import { humanBytes, humanTime } from '../format/human.ts'
import { table } from '../format/table.ts'
import { asJson, print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption, type JsonOption } from './options/client-command.ts'

/** Response of `/api/tags`. Source: Ollama API reference, "List models". */
interface Tags {
  readonly models: readonly {
    readonly name: string
    readonly digest: string
    readonly size: number
    readonly modified_at: string
  }[]
}

export const list = clientCommand('list [prefix]', 'list models').alias('ls').option('--json', 'print JSON')

list.action((prefix: string | undefined, { json, ...options }: HostOption & JsonOption) =>
  withServer(options, async (server) => {
    const { models } = await server.get<Tags>('/api/tags')
    const listed = models.filter(({ name }) => name.toLowerCase().startsWith(prefix?.toLowerCase() ?? ''))
    if (json) return void print(asJson(listed))
    const rows = listed.map(({ name, digest, size, modified_at }) => [
      name,
      digest.slice(0, 12),
      humanBytes(size),
      humanTime(modified_at),
    ])
    print(table([['NAME', 'ID', 'SIZE', 'MODIFIED'], ...rows]))
  }),
)
