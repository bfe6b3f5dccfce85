/** Shortens the start-up log of Nest, which has one line per route. */
import type { LoggerService } from '@nestjs/common'

/** The first word in the names of our controllers. */
export const routesController = 'LlmController'

/**
 * Wraps the logger of an app, so that the start-up log has one line for the routes of an `LlmModule` instead of one line
 * per route: `LlmController (ollama, openai, anthropic, modelmount) {/llm}:`. Other lines stay as they are.
 *
 * @example NestFactory.create(AppModule, { logger: summarizeRoutes(new ConsoleLogger()) })
 */
export function summarizeRoutes(logger: LoggerService): LoggerService {
  let isOurs = false
  const log: LoggerService['log'] = (message, ...rest) => {
    // Nest logs a line of each controller, and then the lines of its routes.
    const context = rest.at(-1)
    if (context === 'RoutesResolver') isOurs = String(message).startsWith(routesController)
    if (!isOurs || context !== 'RouterExplorer') logger.log(message, ...rest)
  }
  return new Proxy(logger, {
    get: (target, name) => {
      if (name === 'log') return log
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
