/** Mounts the routes of an `Llm` in a Nest app, as controllers, and provides the `Llm` for injection. */
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { checkAdmin, checkAuthenticate } from '@modelmount/core/adapter'
import {
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { controllersFor, type LlmRouteOptions } from './llm.controller.ts'
import { LLM } from './llm.tokens.ts'

/** The options of `createLlm()`, or an `Llm` that exists. Who made it closes it. */
export type LlmModuleOptions = (LlmOptions & { readonly llm?: undefined }) | { readonly llm: Llm }

/** What is known before any provider is: given beside `useFactory`, not by it. */
export interface LlmModuleExtras extends LlmRouteOptions {
  /** Lets every module inject the `Llm`, also those that do not import this one. @default false */
  readonly isGlobal?: boolean | undefined
}

// The builder takes for an extra what has a key here.
const extras: object = {
  dialects: undefined,
  path: undefined,
  adminPath: undefined,
  unknownRoutes: undefined,
  bodyLimit: undefined,
  authenticate: undefined,
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
        useFactory: async ({ llm: given, ...options }: LlmModuleOptions): Promise<Llm> => {
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
 * In `imports` of the app's module. Nest's own body parser stops at 100 kB, which is small for prompts: create the
 * app with `bodyParser: false`, or call `app.useBodyParser('json', { limit: '32mb' })`.
 */
@Module({})
export class LlmModule extends ConfigurableModuleClass implements OnApplicationShutdown {
  readonly #close: () => Promise<void>

  constructor(
    @Inject(LLM) llm: Llm,
    @Inject(OPTIONS) options: LlmModuleOptions,
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
  ) {
    super()
    // An application context without HTTP has an adapter without a type.
    if (httpAdapter?.getType() === 'fastify')
      throw new TypeError('Expected an app on @nestjs/platform-express, got one on fastify')
    this.#close = options.llm ? async () => {} : () => llm.close()
  }

  static override forRoot(options: LlmModuleOptions & LlmModuleExtras = {}): DynamicModule {
    // biome-ignore lint/complexity/noThisInStatic: the builder makes a module of the class that it is called on.
    return super.forRoot(options)
  }

  /** The last of Nest's hooks: the server is closed by then, and the answers that it was giving are given. */
  async onApplicationShutdown(): Promise<void> {
    await this.#close()
  }
}
