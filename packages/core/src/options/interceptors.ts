/** Checks the option `interceptors`. */
import type { Interceptor } from '../calls/interceptor.ts'
import { checkKeys, checkObject, describeValue } from './check.ts'

const methods = ['before', 'mapEvents', 'after'] as const

export function resolveInterceptors(given: unknown): readonly Interceptor[] {
  if (given === undefined) return []
  if (!Array.isArray(given))
    throw new TypeError(`Expected \`interceptors\` to be a list, got ${describeValue(given)}`)
  for (const [index, interceptor] of given.entries()) checkInterceptor(`interceptors[${index}]`, interceptor)
  return [...given]
}

function checkInterceptor(option: string, interceptor: Readonly<Record<string, unknown>>): void {
  checkObject(option, interceptor)
  // The object of a class may have fields of its own.
  if (Object.getPrototypeOf(interceptor) === Object.prototype)
    checkKeys(`${option}.`, interceptor, ['name', ...methods])
  const { name } = interceptor
  if (name !== undefined && typeof name !== 'string')
    throw new TypeError(`Expected \`${option}.name\` to be a string, got ${describeValue(name)}`)
  for (const method of methods) {
    const given = interceptor[method]
    if (given !== undefined && typeof given !== 'function')
      throw new TypeError(`Expected \`${option}.${method}\` to be a function, got ${describeValue(given)}`)
  }
  if (methods.every((method) => interceptor[method] === undefined))
    throw new TypeError(`Expected \`${option}\` to have one of ${methods.join('(), ')}()`)
}
