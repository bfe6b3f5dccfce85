/** Converts a Modelfile to the body of `POST /api/create`. */
import { parseModelfile } from '@modelmount/core/models'

/** Throws an error that names the line or the command. */
export function toCreateBody(model: string, source: string): object {
  const { from, adapter, draft, ignored: _, ...modelfile } = parseModelfile(source)
  if (draft !== undefined) throw new Error('DRAFT: draft models are not supported. Remove the line.')
  return {
    model,
    ...toSources(from),
    ...(adapter && { adapters: toFiles('ADAPTER', [adapter]) }),
    ...modelfile,
  }
}

function toSources(from: readonly string[]): object {
  const [name = ''] = from
  if (from.length === 1 && !isPath(name) && !isBlob(name)) return { from: name }
  return { files: toFiles('FROM', from) }
}

/** Only files that the server has already, by their digests, as a shown Modelfile names them. */
function toFiles(command: string, names: readonly string[]): Readonly<Record<string, string>> {
  const unknown = names.find((name) => !isBlob(name))
  if (unknown !== undefined)
    throw new Error(
      `${command} ${unknown}: expected a model of this app. Files on your machine are uploaded by \`modelmount create\`.`,
    )
  return Object.fromEntries(names.map((name, index) => [`file-${index}.gguf`, name.replace('-', ':')]))
}

const isBlob = (name: string): boolean => /^sha256[-:][0-9a-f]{64}$/.test(name)
const isPath = (name: string): boolean => /^[.~\\/]|\.gguf$/i.test(name)
