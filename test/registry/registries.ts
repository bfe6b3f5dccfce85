/** The registries of these tests: our small one, and Docker's where it is installed. */
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { SmallRegistry } from '../support/registry.ts'

type Started = Pick<DockerRegistry, 'url' | 'host' | 'close'>

export const registries: readonly (readonly [name: string, start: () => Promise<Started>])[] = [
  ['a small registry', () => SmallRegistry.start()],
  // In CI, a missing one is a failure.
  ...(hasDockerRegistry || process.env.CI ? ([["Docker's registry", startDockerRegistry]] as const) : []),
]
