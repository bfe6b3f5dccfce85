/** The engine contract, which every engine implements. */
import type { ModelDetails } from '../models/gguf/model-details.ts'
import type { Model } from '../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './embeddings.ts'
import type { EngineHealth } from './engine-health.ts'
import type { GenerateEvent, GenerationProgress } from './events.ts'
import type { ModelSettings } from './model-settings.ts'
import type { ReplicaEvent, ReplicaStatus } from './replicas.ts'
import type { GenerateRequest, LoadOptions } from './request.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from './tokens.ts'

/** What runs models. `createLlm({ engine })` takes any object with these methods. */
export interface Engine {
  /**
   * Streams the events of one generation. Ends early, without an error, when `call.signal` aborts. Generates
   * little that is not pulled: a slow reader makes the pulls pause when its buffer is full.
   * Throws `LlmError` only: `invalid_request`, `not_found`, `context_length`, `overloaded`, `upstream`.
   */
  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent>
  /**
   * Counts the tokens of the prompt, which may be longer than the context. `generate` may use these tokens
   * again for the same `input` object, so this object must not change in between.
   * Rejects with an `AbortError` when `call.signal` aborts, else only with the errors of `generate`.
   */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number>
  /**
   * Returns an upper bound of the tokens of the prompt, for spending limits. Rejects like `countTokens`. An engine without
   * this method counts exactly.
   */
  boundTokens?(request: GenerateRequest, call: EngineCall): Promise<number>
  /**
   * Counts the tokens of the prompt that `generate` would read from the prompt cache now: those of
   * `cacheReadTokens`, or more. Rejects like `countTokens`. An engine without this method reads none.
   */
  countCachedTokens?(request: GenerateRequest, call: EngineCall): Promise<number>
  /**
   * Whether the model of the request sees images. For a model that does not, a text replaces images, or the call is rejected.
   * True if the engine does not know. An engine without this method sees none.
   */
  seesImages?(request: GenerateRequest, call: EngineCall): boolean
  /** Renders the prompt with the model's template. Rejects like `countTokens`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string>
  /**
   * Embeds texts. Rejects like `countTokens`, and with an `LlmError` `invalid_request` for a model without
   * embeddings.
   */
  embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings>
  /**
   * Scores documents against a query. Rejects like `countTokens`, and with an `LlmError` `invalid_request`
   * for a model that cannot rerank.
   */
  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking>
  /** Turns text into token ids. Rejects like `countTokens`. */
  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]>
  /** Turns token ids into text, special tokens included. Rejects like `countTokens`. */
  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string>
  /**
   * Returns the text of each token, special tokens included. Rejects like `countTokens`. An engine without this method
   * rejects requests for pieces.
   */
  tokenPieces?(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]>
  /** Resolves when the model is loaded. Rejects like `countTokens`. */
  load(model: string, options: LoadOptions, call: EngineCall): Promise<void>
  /** Unloads a model after its running calls have ended. Does nothing when the model is not loaded. */
  unload(model: string): Promise<void>
  /**
   * Deletes the KV states of a tenant, in memory and in files, and returns their number. Call it after the calls of
   * the tenant have ended. An engine without this method keeps no states.
   */
  deletePromptStates?(tenant: string): Promise<number>
  /** Lists the models in memory, and those that are being loaded. */
  loaded(): readonly LoadedModel[]
  /** What the engine knows about its ability to answer. An engine without it counts as healthy. */
  readonly health?: EngineHealth | undefined
  /**
   * Finds a model before the store looks for it. Such a model has `details`. Returns undefined for a name that only the
   * store may know. An engine without this method leaves all names to the store. Rejects with an `LlmError` if it cannot
   * know whether the model exists.
   */
  findModel?(name: string): Model | undefined | Promise<Model | undefined>
  /**
   * Lists the models that only the engine knows, with their `details`. The lists of the APIs contain them, so it may be
   * called often. Returns the last known models, or none, while they cannot be read.
   */
  listModels?(): Promise<readonly Model[]>
  /** Reads details of a model, so that a recording of its calls has them. Throws the errors of the store. */
  details?(model: Model): Promise<ModelDetails>
  /** The servers between which the engine divides its calls. An engine without this method has none. */
  replicas?(): readonly ReplicaStatus[]
  /** Calls a listener when a replica joins, leaves, is ejected or returns. Returns a function that ends it. */
  onReplicaEvent?(listener: (event: ReplicaEvent) => void): () => void
  /** Ends running calls and frees all resources. */
  close(): Promise<void>
}

/** What an engine knows about a call, besides its request. */
export interface EngineCall {
  /** Aborts when the caller cancels the call, or leaves. */
  readonly signal: AbortSignal
  /** Model that the store found for `request.model`. If absent, the engine looks the model up. */
  readonly model?: Model | undefined
  /** Alias that the caller used for `request.model`. Errors about a missing model name it, too. */
  readonly alias?: string
  /**
   * Tenant of the caller. KV state of one tenant is never reused for another, and tenants get fair shares of
   * the model's time.
   * @default one tenant for all calls
   */
  readonly tenant?: string
  /** Names the call in lines of the log: the ids of its HTTP request, and of the caller's API key. */
  readonly logFields?: { readonly requestId?: string; readonly key?: string }
  /** Share of the model's time that the tenant gets, relative to other tenants. Above 0. @default 1 */
  readonly weight?: number
  /** Whether the call pauses while the model has foreground calls. @default false */
  readonly background?: boolean
  /**
   * Whether the request has the Modelfile defaults of its model, so that no other app applies them again.
   * @default false
   */
  readonly hasDefaults?: boolean
  /**
   * Context size that the caller asked for without the scope `models`, in tokens. It never changes how the
   * model is loaded. If the loaded context is smaller, and the model was trained for a larger one, the engine
   * rejects a prompt that does not fit instead of truncating it, and `load` rejects with `permission`. The
   * error names this size.
   *
   * @default none
   */
  readonly requestedContextSize?: number
  /**
   * Called by `embed` and `rerank` with the tokens of each text when the model has evaluated it. So these
   * texts count even if the call is aborted or fails.
   */
  readonly onInputTokens?: (tokens: number) => void
  /**
   * Called while the model loads, and by `generate` also while it evaluates the prompt. In contrast to `returnProgress`,
   * it adds no events. Must not throw. An engine may ignore it.
   */
  readonly onProgress?: ((progress: GenerationProgress) => void) | undefined
}

/** A model in memory, or on its way there. */
export interface LoadedModel {
  /** Name of the model with its tag, such as `llama3.2:latest`. */
  readonly name: string
  /**
   * Digest of the model when it was loaded. Since then, the model's name may have been removed or given to
   * another model.
   */
  readonly digest?: string
  /** `loading` until the model can take calls. */
  readonly state: 'loading' | 'ready'
  /** Process id of the model process, if the engine uses one. */
  readonly processId?: number | undefined
  /** Maximum number of tokens of prompt and output together. 0 while unknown. */
  readonly contextSize: number
  /** Memory in bytes. 0 while unknown. */
  readonly sizeBytes: number
  /** Part of `sizeBytes` on a graphics card. 0 while unknown. */
  readonly gpuBytes: number
  /** Number of the model's layers on graphics cards. 0 on the CPU, and while unknown. */
  readonly gpuLayers?: number | undefined
  /**
   * Settings that could not be met, as in the log. For example, a model runs on the CPU because the graphics
   * card is full.
   */
  readonly notes?: readonly string[] | undefined
  /** What the model process does, as it has reported about a second ago. Absent until its first report. */
  readonly activity?: ModelActivity | undefined
  /** Settings of the app for this model. Absent without such settings. */
  readonly settings?: ModelSettings
  /** Time at which the model is unloaded if no call uses it until then. */
  readonly expiresAt: Date | 'never'
}

/** What a model process does, for all apps that share it. */
export interface ModelActivity {
  /** Prompts and answers that are evaluated, or texts of a pooling model. */
  readonly activeSequences: number
  /** Those that wait for a slot. */
  readonly waitingSequences: number
  /** Resident memory of the process. Contains the weights as far as they are in memory. */
  readonly memoryBytes: number
  /** Saved prompt states, in files. */
  readonly cachedStates: number
  readonly cachedStateBytes: number
  readonly reportedAt: Date
}
