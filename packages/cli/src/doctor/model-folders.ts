/** Checks the folders of models, their disks, and the models in them. */
import { existsSync, statfsSync } from 'node:fs'
import { createLlm, type LlmOptions } from '@modelmount/core'
import { findDamagedManifests } from '@modelmount/core/machine'
import type { Model } from '@modelmount/core/models'
import { modelsFolder } from '../database.ts'
import { humanBytes } from '../format/human.ts'
import { canRead, canWrite } from './access.ts'
import { type Finding, findingsOf, plural, quoted } from './finding.ts'

const { ok, warning, problem } = findingsOf('models')

/** A model of 8 billion parameters in 4 bits takes about this. */
const leastFreeBytes = 5e9

/** @param memoryBytes memory of the machine, or undefined if it is unknown */
export async function checkModelFolders(
  { models }: LlmOptions,
  memoryBytes: number | undefined,
): Promise<readonly Finding[]> {
  const locations = models === undefined ? [] : [models].flat().filter((one) => typeof one === 'string')
  const missing = locations.filter((path) => !existsSync(path))
  if (missing.length > 0)
    return missing.map((path) => problem(`${path} does not exist.`, `mkdir -p ${quoted(path)}`))
  const folders = (models === undefined ? [modelsFolder()] : locations).filter(
    (path) => !path.toLowerCase().endsWith('.gguf'),
  )
  const ofFolders = folders.map((path, index) => checkFolder(path, index === 0))
  if (ofFolders.some(({ status }) => status === 'problem')) return ofFolders
  return [...ofFolders, ...(await checkModels(models, folders, memoryBytes))]
}

function checkFolder(path: string, isFirst: boolean): Finding {
  if (!existsSync(path)) return ok(`${path} does not exist yet. The first pull creates it`)
  if (!canRead(path)) return problem(`${path} cannot be read.`, `sudo chown -R "$(id -un)" ${quoted(path)}`)
  const { bavail, bsize } = statfsSync(path)
  const free = `${humanBytes(bavail * bsize)} free`
  // New models are stored in the first folder.
  if (!isFirst) return ok(`${path} can be read`)
  if (!canWrite(path))
    return warning(
      `${path} cannot be written, so models cannot be pulled or created.`,
      `sudo chown -R "$(id -un)" ${quoted(path)}`,
    )
  return bavail * bsize >= leastFreeBytes
    ? ok(`${path} can be written, ${free}`)
    : warning(`${path} has only ${free}.`, `du -sh ${quoted(path)}; modelmount rm MODEL`)
}

async function checkModels(
  models: LlmOptions['models'],
  folders: readonly string[],
  memoryBytes = Number.POSITIVE_INFINITY,
): Promise<readonly Finding[]> {
  const llm = await createLlm({ models })
  try {
    const found = await llm.models.list()
    const own = found.filter(({ isBuiltIn }) => !isBuiltIn)
    const damaged = await findDamagedManifests(folders)
    const findings = [
      ...damaged.map((name) => problem(`The manifest of ${name} is damaged.`, repull(name))),
      ...(
        await Promise.all(
          found.map((model) => checkModel(model, memoryBytes, () => llm.models.details(model))),
        )
      ).flat(),
    ]
    if (findings.length > 0) return findings
    return own.length > 0
      ? [ok(`${plural(own.length, 'model')} found`)]
      : [warning('Only the built-in model was found.', 'modelmount pull llama3.2')]
  } finally {
    await llm.close()
  }
}

async function checkModel(
  { name, sizeBytes, isIncomplete }: Model,
  memoryBytes: number,
  readDetails: () => Promise<unknown>,
): Promise<readonly Finding[]> {
  if (isIncomplete) return [problem(`Files of ${name} are missing.`, `modelmount pull ${quoted(name)}`)]
  if (sizeBytes > memoryBytes)
    return [
      warning(
        `${name} has ${humanBytes(sizeBytes)}, more than the memory of this machine.`,
        `modelmount rm ${quoted(name)}`,
      ),
    ]
  return readDetails().then(
    () => [],
    (error: Error) => [problem(`${name} cannot be used: ${error.message}`, repull(name))],
  )
}

const repull = (name: string): string => `modelmount rm ${quoted(name)}; modelmount pull ${quoted(name)}`
