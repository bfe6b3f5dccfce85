export interface RunningPostgres {
  readonly url: string
  /** Ends the server, and keeps its data. */
  halt(): Promise<void>
  /** Starts the server again, on the same port. */
  resume(): Promise<void>
  stop(): Promise<void>
}

/** Whether the npm package with PostgreSQL is installed. It exists for some platforms only. */
export declare const hasPostgres: boolean

/**
 * Starts a server on a free port of the loopback address, with an empty data folder.
 *
 * @param options.dataParent folder in which to create the data folder. Default: the one for temporary files
 * @param options.onStop called with the data folder when the server has stopped, before the folder is deleted
 */
export declare function startPostgres(options?: {
  readonly dataParent?: string
  readonly onStop?: (data: string) => void
}): Promise<RunningPostgres>
