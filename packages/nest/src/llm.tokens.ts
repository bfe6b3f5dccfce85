/** Injection of the `Llm`. */
import { Inject } from '@nestjs/common'

/** The token of the `Llm`: for `inject` of a factory, `app.get()`, and `overrideProvider()` in tests. */
export const LLM = Symbol('Llm')

/** `constructor(@InjectLlm() private readonly llm: Llm) {}` */
export const InjectLlm = (): ReturnType<typeof Inject> => Inject(LLM)
