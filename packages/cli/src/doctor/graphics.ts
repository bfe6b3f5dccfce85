/** Checks that graphics cards of the machine are used. */
import { existsSync } from 'node:fs'
import type { MachineReport } from '@modelmount/core/machine'
import { humanBytes } from '../format/human.ts'
import { type Finding, findingsOf } from './finding.ts'

const { ok, warning } = findingsOf('graphics card')

interface Drivers {
  readonly hasNvidia: boolean
  readonly hasAmd: boolean
}

export function checkGraphics(
  { engine }: Pick<MachineReport, 'engine'>,
  tested: string,
  { hasNvidia, hasAmd } = findDrivers(),
): Finding {
  if ('problem' in engine) return ok('Not checked, because the engine does not start')
  const { gpu, cards, freeVramBytes, totalVramBytes } = engine
  if (gpu) {
    const memory = `${humanBytes(freeVramBytes)} of ${humanBytes(totalVramBytes)} free`
    return ok(`${cards.join(', ')} with ${gpu}, ${memory}`)
  }
  if (hasNvidia)
    return warning(
      'The driver of an NVIDIA card is loaded, but models run on the CPU, because the engine for CUDA is missing or does not start.',
      `npm install @node-llama-cpp/${process.platform === 'win32' ? 'win' : 'linux'}-x64-cuda@${tested}`,
    )
  if (hasAmd)
    return warning(
      'The driver of an AMD card is loaded, but models run on the CPU, because the engine for Vulkan is missing or does not start.',
      `npm install @node-llama-cpp/linux-x64-vulkan@${tested}`,
    )
  return ok('None found, models run on the CPU')
}

/** Looks for the devices that the drivers of Linux create. */
const findDrivers = (): Drivers => ({
  hasNvidia: existsSync('/dev/nvidiactl'),
  hasAmd: existsSync('/dev/kfd'),
})
