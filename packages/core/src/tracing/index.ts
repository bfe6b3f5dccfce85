/** The entry point `@modelmount/core/tracing`: spans by `@opentelemetry/api`, an optional peer dependency. */
export { registerTracing, type TracingOptions } from './register-tracing.ts'
