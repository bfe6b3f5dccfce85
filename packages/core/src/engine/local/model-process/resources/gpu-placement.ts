/** Describes where the layers of a model are, if that is not where its settings want them. */
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { countGpuLayers } from './load-settings.ts'
import type { MemorySpace } from './machine-memory.ts'

export interface GpuPlacement {
  /** Layers on graphics cards. */
  readonly gpuLayers: number
  readonly totalLayers: number
  /** Memory of graphics cards when the layers were chosen. */
  readonly vram: MemorySpace
  /** Kind of graphics cards that the build of llama.cpp supports, such as `cuda`. */
  readonly backend: string | false
}

/** Returns a note for the app's log. On a machine without graphics cards, `auto` asks for no layers on one. */
export function describePlacement(
  { modelName, gpuLayers: wanted }: Pick<ProcessConfig, 'modelName' | 'gpuLayers'>,
  { gpuLayers, totalLayers, vram, backend }: GpuPlacement,
): readonly string[] {
  const name = `The model "${modelName}"`
  if (vram.total === 0)
    // The library chooses such a build only where the libraries of a driver are installed.
    return wanted === 0 || (wanted === 'auto' && !backend)
      ? []
      : [`${name} runs on the CPU: the engine found no graphics card for \`gpuLayers: ${wanted}\`.`]
  if (gpuLayers >= countGpuLayers(wanted, { totalLayers }, vram)) return []
  const reason = `the graphics card has ${formatGb(vram.free)} of free memory`
  return gpuLayers === 0
    ? [`${name} runs on the CPU: ${reason}, too little for its ${totalLayers} layers.`]
    : [`${name} runs ${gpuLayers} of its ${totalLayers} layers on the graphics card: ${reason}.`]
}

export const formatGb = (bytes: number): string => `${Number((bytes / 1e9).toPrecision(2))} GB`
