/** Mounts the routes of an `Llm` in a Nest app, as controllers, and provides the `Llm` for injection. */
import { type CloseOptions, createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { checkAdmin, checkAuthenticate, isLlm, resolveCloseOptions } from '@modelmount/core/adapter'
import {
  type BeforeApplicationShutdown,
  ConfigurableModuleBuilder,
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type NestModule,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { adaptRoutes, type NestFastifyApp } from './fastify-routes.ts'
import { controllersFor, type LlmRouteOptions } from './llm.controller.ts'
import { LlmHealthIndicator } from './llm.health-indicator.ts'
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
  llamaServerRoutes: undefined,
  path: undefined,
  adminPath: undefined,
  health: undefined,
  metrics: undefined,
  unknownRoutes: undefined,
  bodyLimit: undefined,
  publicUrl: undefined,
  authenticate: undefined,
  authenticateTimeout: undefined,
  isGlobal: undefined,
} satisfies Record<keyof LlmModuleExtras, undefined>

const OPTIONS = Symbol('LlmModuleOptions')
const CREATED = Symbol('CreatedLlm')
const ROUTES = Symbol('LlmRouteOptions')

/** The `Llm` that the module has created and closes. Empty if the app or a test provides another one. */
interface Created {
  llm?: Llm
  shutdown?: CloseOptions | undefined
}

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<LlmModuleOptions>({
  optionsInjectionToken: OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras<LlmModuleExtras>(extras, (definition, { isGlobal = false, ...routeOptions }) => ({
    ...definition,
    global: isGlobal,
    controllers: controllersFor(routeOptions),
    providers: [
      // Each app that imports this module gets its own object.
      { provide: CREATED, useFactory: (): Created => ({}) },
      { provide: ROUTES, useValue: routeOptions },
      ...(definition.providers ?? []).map(toLlmProvider),
      LlmHealthIndicator,
    ],
    exports: [LLM, LlmHealthIndicator],
  }))
  .build()

/**
 * Replaces the provider of the options by the one of the `Llm`. With a provider for each, a test that overrides
 * `LLM` would still run the app's factory of the options.
 */
function toLlmProvider(provider: Provider): Provider {
  if (!('provide' in provider) || provider.provide !== OPTIONS) return provider
  const open = async (created: Created, given: LlmModuleOptions): Promise<Llm> => {
    const { llm: existing, shutdown, ...options } = given
    resolveCloseOptions(shutdown) // An invalid option fails now instead of at the end.
    const llm = existing ?? (await createLlm(options))
    if (!existing) Object.assign(created, { llm, shutdown })
    return llm
  }
  if ('useValue' in provider)
    return {
      provide: LLM,
      inject: [CREATED],
      useFactory: (created: Created) => open(created, provider.useValue),
    }
  const { useFactory, inject = [] } = provider as FactoryProvider<LlmModuleOptions>
  return {
    provide: LLM,
    inject: [CREATED, ...inject],
    useFactory: async (created: Created, ...injected: readonly unknown[]) =>
      open(created, await useFactory(...injected)),
  }
}

/**
 * Add this to the `imports` of the app's module. On Express, Nest's own body parser stops at 100 kB, which is too
 * small for long prompts. Create the app with `bodyParser: false`, or call
 * `app.useBodyParser('json', { limit: '32mb' })`.
 */
@Module({})
export class LlmModule
  extends ConfigurableModuleClass
  implements NestModule, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #created: Created
  readonly #adapterHost: HttpAdapterHost

  constructor(
    @Inject(CREATED) created: Created,
    // Creates the `Llm` before the routes are mounted, also in an app that injects it nowhere.
    @Inject(LLM) llm: Llm,
    @Inject(ROUTES) { authenticate, adminPath }: LlmRouteOptions,
    @Inject(HttpAdapterHost) adapterHost: HttpAdapterHost,
  ) {
    super()
    this.#created = created
    this.#adapterHost = adapterHost
    // Checked here and not in the provider of `LLM`, which a test can override. A fake with only the methods that the
    // app calls cannot answer our routes.
    if (!isLlm(llm)) return
    checkAuthenticate(llm, authenticate)
    if (adminPath !== undefined) checkAdmin(llm)
  }

  /** Creates the module for the `imports` of the app's module. Throws a `TypeError` for an invalid option. */
  static override forRoot(options: LlmModuleOptions & LlmModuleExtras = {}): DynamicModule {
    // biome-ignore lint/complexity/noThisInStatic: the builder returns a module of the class it is called on.
    return super.forRoot(options)
  }

  /** Runs before Nest adds routes to the HTTP server. A test has no adapter yet when it creates the module. */
  configure(): void {
    const { httpAdapter } = this.#adapterHost
    if (httpAdapter.getType() === 'fastify') adaptRoutes(httpAdapter.getInstance<NestFastifyApp>())
  }

  /** Runs before Nest closes the server, which waits for running responses. */
  async beforeApplicationShutdown(): Promise<void> {
    const { llm, shutdown } = this.#created
    if (shutdown) await llm?.close(shutdown)
  }

  /** Runs as the last hook of Nest, when the server is closed and all responses are over. */
  async onApplicationShutdown(): Promise<void> {
    await this.#created.llm?.close()
  }
}
