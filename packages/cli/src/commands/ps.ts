/** `modelmount ps`: lists the models in memory. */
import { humanBytes, humanTime } from '../format/human.ts'
import { table } from '../format/table.ts'
import { asJson, print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption, type JsonOption, noteIfNoServer } from './options/client-command.ts'

/** Response of `/api/ps`. Source: Ollama API reference, "List running models". */
interface Running {
  readonly models: readonly {
    readonly name: string
    readonly digest: string
    readonly size: number
    readonly size_vram: number
    readonly context_length: number
    readonly expires_at: string
  }[]
}

export const ps = clientCommand('ps', 'list running models').option('--json', 'print JSON')

ps.action(({ json, ...options }: HostOption & JsonOption) =>
  withServer(options, async (server) => {
    const { models } = await server.get<Running>('/api/ps')
    noteIfNoServer(server)
    if (json) return void print(asJson(models))
    const rows = models.map((model) => [
      model.name,
      model.digest.slice(0, 12),
      humanBytes(model.size),
      processor(model),
      String(model.context_length),
      Date.parse(model.expires_at) < Date.now() ? 'Stopping...' : humanTime(model.expires_at),
    ])
    print(table([['NAME', 'ID', 'SIZE', 'PROCESSOR', 'CONTEXT', 'UNTIL'], ...rows]))
  }),
)

function processor({ size, size_vram }: Running['models'][number]): string {
  if (size_vram === 0) return '100% CPU'
  const gpu = Math.round((size_vram / size) * 100)
  return size_vram < size ? `${100 - gpu}%/${gpu}% CPU/GPU` : '100% GPU'
}
