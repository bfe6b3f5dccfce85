/** The routes of the console, for any adapter. The entry points `./express`, `./koa`, … mount them. */
export { type ConsoleOptions, consoleRoutes } from './console-routes.ts'
export { LoginLinks } from './login-links.ts'
