export interface DockerRegistry {
  readonly url: string
  /** Host and port, as they appear in model names. */
  readonly host: string
  readonly processId: number
  close(): Promise<void>
}

export declare const hasDockerRegistry: boolean

/**
 * Throws if Docker's registry is not installed.
 *
 * @param settings further lines of its configuration, as YAML
 */
export declare function startDockerRegistry(settings?: string): Promise<DockerRegistry>
