/** Mounts the routes of an `Llm` in a Nest app, as controllers, and provides the `Llm` for injection. */
import { type CloseOptions, createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { checkAdmin, checkAuthenticate, resolveCloseOptions } from '@modelmount/core/adapter'
import {
  type BeforeApplicationShutdown,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { controllersFor, type LlmRouteOptions } from './llm.controller.ts'
import { LLM } from './llm.tokens.ts'

/** The options of `createLlm()`, or an existing `Llm`, which the module does not close. */
export type LlmModuleOptions =
  | (LlmOptions & {
      readonly llm?: undefined
      /**
       * Ends calls before Nest closes the server: `{ drain: '10s' }`.
       *
       * @default the server closes first, which waits for all responses
       */
      readonly shutdown?: CloseOptions | undefined
    })
  | { readonly llm: Llm; readonly shutdown?: undefined }

/**
 * Options that Nest needs before it creates providers. With `forRootAsync`, pass them beside `useFactory`.
 */
export interface LlmModuleExtras extends LlmRouteOptions {
  /** Whether all modules can inject the `Llm` without importing this module. @default false */
  readonly isGlobal?: boolean | undefined
}

// The builder treats each key of this object as an extra option.
const extras: object = {
  dialects: undefined,
  cloudRoutes: undefined,
  path: undefined,
  adminPath: undefined,
  unknownRoutes: undefined,
  bodyLimit: undefined,
  publicUrl: undefined,
  authenticate: undefined,
  authenticateTimeout: undefined,
  isGlobal: undefined,
} satisfies Record<keyof LlmModuleExtras, undefined>

const OPTIONS = Symbol('LlmModuleOptions')

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<LlmModuleOptions>({
  optionsInjectionToken: OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras<LlmModuleExtras>(extras, (definition, { isGlobal = false, ...routeOptions }) => ({
    ...definition,
    global: isGlobal,
    controllers: controllersFor(routeOptions),
    providers: [
      ...(definition.providers ?? []),
      {
        provide: LLM,
        inject: [OPTIONS],
        useFactory: async ({ llm: given, shutdown, ...options }: LlmModuleOptions): Promise<Llm> => {
          resolveCloseOptions(shutdown) // An invalid option fails now instead of at the end.
          const llm = given ?? (await createLlm(options))
          checkAuthenticate(llm, routeOptions.authenticate)
          if (routeOptions.adminPath !== undefined) checkAdmin(llm)
          return llm
        },
      },
    ],
    exports: [LLM],
  }))
  .build()

/**
 * Add this to the `imports` of the app's module. Nest's own body parser stops at 100 kB, which is too small
 * for long prompts. Create the app with `bodyParser: false`, or call
 * `app.useBodyParser('json', { limit: '32mb' })`.
 */
@Module({})
export class LlmModule
  extends ConfigurableModuleClass
  implements BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #close: (options?: CloseOptions) => Promise<void>
  readonly #shutdown: CloseOptions | undefined

  constructor(
    @Inject(LLM) llm: Llm,
    @Inject(OPTIONS) options: LlmModuleOptions,
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
  ) {
    super()
    // An application context without HTTP has no `httpAdapter`.
    if (httpAdapter?.getType() === 'fastify')
      throw new TypeError('Expected an app on @nestjs/platform-express, got one on fastify')
    this.#close = options.llm ? async () => {} : (how) => llm.close(how)
    this.#shutdown = options.shutdown
  }

  static override forRoot(options: LlmModuleOptions & LlmModuleExtras = {}): DynamicModule {
    // biome-ignore lint/complexity/noThisInStatic: the builder returns a module of the class it is called on.
    return super.forRoot(options)
  }

  /** Runs before Nest closes the server, which waits for running responses. */
  async beforeApplicationShutdown(): Promise<void> {
    if (this.#shutdown) await this.#close(this.#shutdown)
  }

  /** Runs as the last hook of Nest, when the server is closed and all responses are over. */
  async onApplicationShutdown(): Promise<void> {
    await this.#close()
  }
}
