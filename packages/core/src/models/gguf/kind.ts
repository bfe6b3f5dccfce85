/** Detects what a GGUF file contains, like Ollama's `server/create.go`. */
import { withFile } from '../ollama-store/disk.ts'
import type { Gguf } from './gguf.ts'

/** A `projector` encodes images or audio into embeddings. */
export type GgufKind = 'model' | 'projector' | 'adapter'

export function detectGgufKind(metadata: Gguf['metadata']): GgufKind {
  const type = metadata['general.type']
  if (type === 'adapter') return 'adapter'
  if (type === 'projector' || type === 'mmproj') return 'projector'
  const architecture = String(metadata['general.architecture'])
  const has = (key: string): boolean => Number(metadata[`${architecture}.${key}`] ?? 0) > 0
  if (architecture === 'clip' && (has('has_vision_encoder') || has('has_audio_encoder'))) return 'projector'
  return has('vision.block_count') && !has('block_count') ? 'projector' : 'model'
}

/** Checks the magic bytes. */
export function isGguf(path: string): Promise<boolean> {
  return withFile(path, 'r', async (file) => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    return bytesRead === 4 && buffer.toString('latin1') === 'GGUF'
  })
}
