/** The registries of the transfer tests: `SmallRegistry`, and Docker's registry if it is installed. */
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { SmallRegistry } from '../support/registry.ts'

type Started = Pick<DockerRegistry, 'url' | 'host' | 'close'>

export const registries: readonly (readonly [name: string, start: () => Promise<Started>])[] = [
  ['SmallRegistry', () => SmallRegistry.start()],
  // In CI, the tests fail if Docker's registry is not installed.
  ...(hasDockerRegistry || process.env.CI ? ([["Docker's registry", startDockerRegistry]] as const) : []),
]
