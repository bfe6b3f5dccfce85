/** The part of packages that the pages use and this workspace does not install. */
declare module 'hono' {
  /** Hono infers the types of what an app sets and gets. */
  // biome-ignore lint/suspicious/noExplicitAny: see above
  export type Context = any
  export type Next = () => Promise<void>
  export type Middleware = (c: Context, next: Next) => unknown
  export class Hono {
    use(path: string | Middleware, middleware?: Middleware): void
    get(path: string, handler: (c: Context) => unknown): void
    all(path: string, handler: (c: Context) => unknown): void
    mount(path: string, handler: (request: Request) => unknown): void
    onError(handler: (error: Error, c: Context) => unknown): void
    fetch(request: Request): Promise<Response>
  }
}
declare module '@hono/node-server' {
  export function serve(options: {
    readonly fetch: (request: Request) => Promise<Response>
    readonly port: number
  }): import('node:http').Server
}
declare module '@hono/node-server/conninfo' {
  export function getConnInfo(c: import('hono').Context): { readonly remote: { readonly address?: string } }
}
declare module '@nestjs/config' {
  export class ConfigService {
    getOrThrow(name: string): string
  }
  export const ConfigModule: {
    forRoot(options: { readonly isGlobal: boolean }): import('@nestjs/common').DynamicModule
  }
}
