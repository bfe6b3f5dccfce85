export interface DockerRegistry {
  readonly url: string
  /** As it stands in the names of models. */
  readonly host: string
  readonly processId: number
  close(): Promise<void>
}

export declare const hasDockerRegistry: boolean

/** Throws where it is not installed. */
export declare function startDockerRegistry(): Promise<DockerRegistry>
