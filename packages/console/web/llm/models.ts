/** The models of the app, by the Ollama API. */
import { queryOptions, useQuery } from '@tanstack/preact-query'
import { useMemo } from 'preact/hooks'
import { request } from '../api/client.ts'

export interface ModelDetails {
  readonly family: string
  readonly parameter_size: string
  readonly quantization_level: string
  readonly context_length?: number
  readonly embedding_length?: number
}

/** An entry of `GET /api/tags`. */
export interface Model {
  readonly name: string
  readonly modified_at: string
  readonly size: number
  readonly digest: string
  readonly details: ModelDetails
  /** Missing for a file that cannot be read. */
  readonly capabilities?: readonly string[]
}

/** An entry of `GET /api/ps`. */
export interface LoadedModel {
  readonly name: string
  /** Memory in bytes, on the CPU and on cards. */
  readonly size: number
  /** Memory on cards. */
  readonly size_vram: number
  readonly context_length: number
  readonly expires_at: string
}

/** Response of `POST /api/show`. */
export interface ShownModel {
  readonly modelfile: string
  readonly parameters?: string
  readonly template: string
  readonly system?: string
  readonly license?: string
  readonly details: ModelDetails
  readonly model_info: Readonly<Record<string, unknown>>
  readonly capabilities: readonly string[]
}

export const modelsKey = ['models'] as const

const readJson = async <Value>(response: Promise<Response>): Promise<Value> =>
  (await (await response).json()) as Value

export const modelsQuery = queryOptions({
  queryKey: [...modelsKey, 'all'],
  queryFn: async ({ signal }) =>
    (await readJson<{ models: readonly Model[] }>(request('llm/api/tags', { signal }))).models,
})

const refreshMs = 5_000

export const loadedQuery = queryOptions({
  queryKey: [...modelsKey, 'loaded'],
  queryFn: async ({ signal }) =>
    (await readJson<{ models: readonly LoadedModel[] }>(request('llm/api/ps', { signal }))).models,
  refetchInterval: refreshMs,
})

export const shownQuery = (model: string) =>
  queryOptions({
    queryKey: [...modelsKey, 'shown', model],
    queryFn: ({ signal }) => readJson<ShownModel>(request('llm/api/show', { json: { model }, signal })),
  })

interface ListedModel {
  readonly id: string
  readonly owned_by: string
}

/** Names, with who provides each model. Only the OpenAI API tells the built-in model from others. */
const namesQuery = queryOptions({
  queryKey: ['model-names'],
  queryFn: async ({ signal }) =>
    (await readJson<{ data: readonly ListedModel[] }>(request('llm/v1/models', { signal }))).data,
  retry: false,
  staleTime: 60_000,
})

/** Names of the models that the viewer may use. Empty if the viewer may not list models. */
export const useModelNames = (): readonly string[] => (useQuery(namesQuery).data ?? []).map(({ id }) => id)

/** Returns a function that tells whether a model is that of the package `@modelmount/tiny-model`. */
export function useIsBuiltIn(): (name: string) => boolean {
  const { data } = useQuery(namesQuery)
  return useMemo(() => {
    const models = (data ?? []).filter((model) => model.owned_by === 'modelmount')
    return (name) => models.some(({ id }) => name === id || name === `${id}:latest`)
  }, [data])
}

/** Finds a model by its name. The tag `latest` may be missing. */
export const findModel = <Named extends { readonly name: string }>(
  models: readonly Named[] | undefined,
  wanted: string,
): Named | undefined => models?.find(({ name }) => name === wanted || name === `${wanted}:latest`)

/** Whether a model answers chats. Those for embeddings and reranking do not. */
export const canChat = ({ capabilities }: Pick<Model, 'capabilities'>): boolean =>
  capabilities === undefined || capabilities.includes('completion')
