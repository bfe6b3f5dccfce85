/** The entry point `@modelmount/console/nest`. */
import { toBytes } from '@modelmount/core/adapter'
import { type AuthenticateOptions, checkPublicUrl, createAuthenticator } from '@modelmount/core/http'
import { createController, type LlmRequest } from '@modelmount/nest'
import { type DynamicModule, Module } from '@nestjs/common'
import { type ConsoleOptions, consoleRoutes } from './console-routes.ts'

/** Options of the console in a Nest app. `authenticate` gets the request of Express or Fastify. */
export interface NestConsoleOptions extends ConsoleOptions, AuthenticateOptions<LlmRequest> {
  /** Path of the console, after the global prefix of the app. @default 'console' */
  readonly path?: string | undefined
  /** URL of the console as browsers call it, with the prefixes. @default derived from each request */
  readonly publicUrl?: string | undefined
  /** The module with the `Llm`, unless that one is global. */
  readonly imports?: DynamicModule['imports']
}

/**
 * Adds the console to an app with a global `LlmModule`: `ConsoleModule.forRoot({ authenticate })`. Without
 * `authenticate`, viewers log in with an API key of `auth: 'keys'`. The guards of the app run first.
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class ConsoleModule {
  /** Creates the module for the `imports` of the app's module. Throws a `TypeError` for an invalid option. */
  static forRoot(options: NestConsoleOptions = {}): DynamicModule {
    const { path = 'console', apiUrl, loginLinks, imports = [] } = options
    const table = consoleRoutes({ apiUrl, loginLinks })
    const controller = createController({
      ...{ name: 'LlmController (console)', path, table, unknownRoutes: 'error' },
      requestOptions: { bodyLimit: toBytes('32mb'), publicUrl: checkPublicUrl(options.publicUrl) },
      authenticate: createAuthenticator<LlmRequest>(options),
      onLlm: (llm) => table.checkMount(llm, options.authenticate),
    })
    return { module: ConsoleModule, imports, controllers: [controller] }
  }
}
