/** What there is of an `Llm` for a caller who may use some of its models only. No dialect has to think of it. */
import type { Caller } from '../accounts/auth/caller.ts'
import type { Llm } from '../llm.ts'
import { createModelFilter, modelNotAllowed } from '../models/model-filter.ts'

export function withModelsOf({ models: allowed }: Caller, llm: Llm): Llm {
  if (!allowed) return llm
  const isAllowed = createModelFilter(allowed)
  /** Also for models that are not there: what else there is, is not to be found out. */
  const expect = (...names: readonly (string | undefined)[]): void => {
    for (const name of names) if (name !== undefined && !isAllowed(name)) throw modelNotAllowed(name)
  }
  const asked =
    <Request extends { readonly model?: string }, Rest extends unknown[], Result>(
      method: (request: Request, ...rest: Rest) => Promise<Result>,
    ) =>
    async (request: Request, ...rest: Rest): Promise<Result> => {
      expect(request.model ?? '')
      return method(request, ...rest)
    }
  const { models } = llm

  return {
    ...llm,
    generate: asked(llm.generate),
    countTokens: asked(llm.countTokens),
    render: asked(llm.render),
    embed: asked(llm.embed),
    rerank: asked(llm.rerank),
    tokenize: asked(llm.tokenize),
    detokenize: asked(llm.detokenize),
    chat: ((input, options = {}) => {
      expect(options.model ?? '')
      return llm.chat(input, options as { stream: true })
    }) as Llm['chat'],
    load: async (model, options) => {
      expect(model)
      return llm.load(model, options)
    },
    unload: async (model) => {
      expect(model)
      return llm.unload(model)
    },
    loaded: () => llm.loaded().filter(({ name }) => isAllowed(name)),
    models: {
      list: async () => (await models.list()).filter(({ name }) => isAllowed(name)),
      get: async (name) => {
        expect(name)
        return models.get(name)
      },
      details: async (model, options) => {
        expect(typeof model === 'string' ? model : model.name)
        return models.details(model, options)
      },
      copy: async (from, to, options) => {
        expect(from, to)
        return models.copy(from, to, options)
      },
      delete: async (name) => {
        expect(name)
        return models.delete(name)
      },
      create: (spec, options) => {
        expect(spec.name, spec.from)
        return models.create(spec, options)
      },
      pull: (name, options) => {
        expect(name)
        return models.pull(name, options)
      },
      push: (name, options) => {
        expect(name)
        return models.push(name, options)
      },
      prune: () => models.prune(),
      blobs: models.blobs,
    },
  }
}
