/** Injection of the `Llm`. */
import { Inject } from '@nestjs/common'

/**
 * The injection token of the `Llm`, for `inject` of a factory, `app.get()`, and `overrideProvider()` in
 * tests.
 */
export const LLM = Symbol('Llm')

/** Injects the `Llm`: `constructor(@InjectLlm() private readonly llm: Llm) {}` */
export const InjectLlm = (): ReturnType<typeof Inject> => Inject(LLM)
