/** Creates the limiter of a Nest app, and provides it for the guards. */
import {
  type ClosableRateLimiter,
  createRateLimiter,
  type RateLimiter,
  type RateLimiterOptions,
} from '@modelmount/core/limits'
import {
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { RATE_LIMITER } from './rate-limit.decorator.ts'

/**
 * The options of `createRateLimiter()`, or an existing limiter such as `llm.limits`, which the module does
 * not close.
 */
export type RateLimitModuleOptions =
  | (RateLimiterOptions & { readonly limiter?: undefined })
  | { readonly limiter: RateLimiter }

/** Options of `RateLimitModule.forRoot()` besides those of the limiter. */
export interface RateLimitModuleExtras {
  /** Whether guards of all modules can inject the limiter without importing this module. @default false */
  readonly isGlobal?: boolean | undefined
}

const OPTIONS = Symbol('RateLimitModuleOptions')

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<RateLimitModuleOptions>({
  optionsInjectionToken: OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras<RateLimitModuleExtras>({ isGlobal: undefined }, (definition, { isGlobal = false }) => ({
    ...definition,
    global: isGlobal,
    providers: [
      ...(definition.providers ?? []),
      { provide: RATE_LIMITER, inject: [OPTIONS], useFactory: openLimiter },
    ],
    exports: [RATE_LIMITER],
  }))
  .build()

async function openLimiter({ limiter, ...options }: RateLimitModuleOptions): Promise<RateLimiter> {
  if (!limiter) return createRateLimiter(options)
  const [other] = Object.keys(options)
  if (other)
    throw new TypeError(`Expected \`limiter\` without \`${other}\`, which belongs to createRateLimiter()`)
  return limiter
}

/** Add this to the `imports` of the app's module. */
@Module({})
export class RateLimitModule extends ConfigurableModuleClass implements OnApplicationShutdown {
  readonly #close: () => Promise<void>

  constructor(
    @Inject(RATE_LIMITER) limiter: Partial<ClosableRateLimiter>,
    @Inject(OPTIONS) options: RateLimitModuleOptions,
  ) {
    super()
    this.#close = async () => {
      if (!options.limiter) await limiter.close?.()
    }
  }

  /** Creates the module for the `imports` of the app's module. Throws a `TypeError` for an invalid option. */
  static override forRoot(options: RateLimitModuleOptions & RateLimitModuleExtras = {}): DynamicModule {
    // biome-ignore lint/complexity/noThisInStatic: the builder returns a module of the class it is called on.
    return super.forRoot(options)
  }

  /** Runs as the last hook of Nest, when the server is closed and all responses are over. */
  async onApplicationShutdown(): Promise<void> {
    await this.#close()
  }
}
