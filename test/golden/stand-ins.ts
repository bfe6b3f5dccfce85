/**
 * The models of the recordings, as links in a folder: most were made from the built-in model by routes that we do not
 * have, and the rest are models of some kind, for which ours of the same kind stand in.
 */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encoderModel, narrowModel, noiseModel, recurrentModel } from '../support/models.ts'

/** Over the very file that was recorded, so that what is read from the file has to be equal. */
const variants = {
  [narrowModel]: [
    ...['tinyset', 'tinyset2', 'tinygo', 'tinytools', 'tinyfim', 'tinylegacy', 'tinythink', 'tinyreq2'],
    ...['tiny', 'tinypb', 'msgbad', 'delme'],
  ],
  [encoderModel]: ['bert'],
  [noiseModel]: ['spm'],
}

const substitutes = {
  // These think and call tools.
  [narrowModel]: ['qwen3', 'lora', 'tinyq', 'tinyq5', 'big', 'gotpl'],
  [encoderModel]: ['rerank'],
  // Random weights under a plain template.
  [noiseModel]: ['llama3', 'gemma3'],
  [recurrentModel]: ['mamba'],
}

export const isSubstitute = (model: string): boolean => Object.values(substitutes).flat().includes(model)

export interface ModelFolder {
  readonly path: string
  remove(): void
}

export function folderOfStandIns(): ModelFolder {
  const path = mkdtempSync(join(tmpdir(), 'golden-'))
  for (const [file, names] of [...Object.entries(variants), ...Object.entries(substitutes)]) {
    for (const name of names) symlinkSync(file, join(path, `${name}.gguf`))
  }
  return { path, remove: () => rmSync(path, { recursive: true }) }
}
