/** The events of the diagnostics channels. Their fields are as the caller and the steps of the call set them. */
import type { CallUsage } from '../accounts/usage/call-usage.ts'
import type { BatchCreated, BatchEnded, BatchItemsEnded, BatchStarted } from '../batches/batch-event.ts'
import type { CallKind } from '../calls/kind.ts'
import type { FinishReason, GenerationProgress, Timings, ToolCall } from '../engine/events.ts'
import type { CacheEviction, ModelEnd, ModelLoad } from '../engine/local/model-events.ts'
import type { ReplicaEvent } from '../engine/replicas.ts'
import type { GenerateRequest, OutputFormat, Sampling } from '../engine/request.ts'
import type { LlmError } from '../errors.ts'

/** A call, as all events about it describe it. */
export interface DiagnosedCall {
  /** The id of the call, as the usage rows have it. All events of one call have the same id. */
  readonly id: string
  /** The operation of the call, such as `generate`. */
  readonly kind: CallKind
  /** The API that received the call, such as `openai`. Undefined for calls of the app. */
  readonly dialect: string | undefined
  /** The pattern of the route, such as `/v1/models/:model`. Undefined for calls of the app. */
  readonly route: string | undefined
  /** The id of the HTTP request, which its response contains. Undefined for calls of the app. */
  readonly requestId: string | undefined
  /** The canonical name of the model. In `call:start`, the name that the caller used. Empty for a call without model. */
  readonly model: string
  /** Whether the store, or `findModel` of the engine, knows the model. False in `call:start`. */
  readonly isKnownModel: boolean
  /** The requested name, if it is an alias or the id of a snapshot. */
  readonly alias: string | undefined
  /** The id of the caller. Undefined for the app itself. */
  readonly caller: string | undefined
  /** The id of the caller's API key. */
  readonly key: string | undefined
  /** Tenant of the caller. */
  readonly tenant: string
  /** Whether the call pauses while the model has other calls, as items of batches do. */
  readonly isBackground: boolean
  /** Whether the call is an item of a batch. */
  readonly isBatchItem: boolean
}

/** What a call asks for, apart from its content. Undefined fields were not requested, or do not apply to the kind. */
export interface CallRequest {
  /** Of `generate`: a conversation, a plain prompt, or a text with a gap. */
  readonly input: 'chat' | 'text' | 'infill' | undefined
  /** Whether the caller reads the answer while it is generated. */
  readonly isStream: boolean
  /** Number of answers to the same prompt. */
  readonly answersPerPrompt: number
  /** Requested maximum number of output tokens. */
  readonly maxTokens: number | undefined
  /** Requested sampling options. */
  readonly sampling: Sampling | undefined
  /** Requested output constraint, such as `json-schema`. */
  readonly format: OutputFormat['type'] | undefined
  /** Of `embed`: the requested length of the vectors. */
  readonly dimensions: number | undefined
}

/** What all events of a call have. */
export interface CallStarted {
  /** The object that `createLlm()` has returned. A process may have several. */
  readonly llm: object
  /** The call whose prompt it is. */
  readonly call: DiagnosedCall
}

/** A call has arrived, and its steps begin. */
export interface CallReceived extends CallStarted {
  /** What the call asks for. */
  readonly request: CallRequest
  /**
   * Returns a header of the HTTP request, such as `traceparent`. Headers can contain secrets. Undefined for calls of the
   * app.
   */
  readonly header: ((name: string) => string | undefined) | undefined
  /** Returns what the call has used so far, while it runs. Undefined before its prompt is evaluated. */
  readonly usage: () => CallUsage | undefined
}

/** A call may run: its limits admit it, and its turn has come. */
export interface CallAdmitted extends CallStarted {
  /** Milliseconds since the start of the call, in which its steps ran and it waited in the queue. */
  readonly queueMs: number
}

/** A call has come further before its first token. */
export interface CallProgress extends CallStarted {
  /** As in `onProgress` of `llm.chat()`: the loaded part of the model, or the evaluated tokens of the prompt. */
  readonly progress: GenerationProgress
}

/** A call has generated its first output token. */
export interface CallFirstToken extends CallStarted {
  /** Milliseconds since the start of the call. */
  readonly firstTokenMs: number
}

/** What is known when a call is over: its times, usage and costs. */
export interface CallOver extends CallStarted {
  /** Milliseconds from the start of the call to its end. */
  readonly durationMs: number
  /** Undefined for a call that was not admitted. */
  readonly queueMs: number | undefined
  /** Undefined for a call without an output token. */
  readonly firstTokenMs: number | undefined
  /** Undefined if the model has evaluated nothing. */
  readonly usage: CallUsage | undefined
  /** Cost in billionths of a dollar. Undefined without a database, a price or usage. */
  readonly costNanoUsd: number | undefined
  /** One per answer. Undefined for an answer whose reader did not get its end. */
  readonly finishReasons: readonly (FinishReason | undefined)[]
  /** The engine's times, one per answer. Undefined as in `finishReasons`. */
  readonly timings: readonly (Timings | undefined)[]
}

/** A route has answered an HTTP request: its headers go to the client. */
export interface RequestEnded {
  /** The object that `createLlm()` has returned. A process may have several. */
  readonly llm: object
  /** The API of the route, such as `openai`. */
  readonly dialect: string
  /** The pattern of the route, such as `/v1/models/:model`. */
  readonly route: string
  /** HTTP method, such as `POST`. */
  readonly method: string
  /** Id of the request, which its response contains. */
  readonly requestId: string
  /** HTTP status of the response. */
  readonly status: number
  /** Milliseconds since the request came. */
  readonly durationMs: number
  /** Why the request was rejected or has failed. A stream that fails later has no error here. */
  readonly error: LlmError | undefined
}

/** An answer, as its reader gets it. */
export interface AnswerContent {
  /** Text of the answer. Empty if the model only called tools. */
  readonly text: string
  /** The model's reasoning before its text. Empty without any. */
  readonly reasoning: string
  /** Complete tool calls, in order. */
  readonly toolCalls: readonly ToolCall[]
}

/** The only event with prompts and answers. */
export interface CallContent extends CallStarted {
  /** The prompts, one per answer. */
  readonly inputs: readonly GenerateRequest['input'][]
  /** Up to where the engine has generated them. Empty if it has not begun. */
  readonly answers: readonly AnswerContent[]
}

/** `llm.chat()` has run a tool. */
export interface ToolEnded {
  /** The object that `createLlm()` has returned. A process may have several. */
  readonly llm: object
  /** Key of the tool in the option `tools`. */
  readonly name: string
  /** What the app tells the model about the tool. Undefined without a description. */
  readonly description: string | undefined
  /** Id of the tool call, which the model's answer has, too. */
  readonly toolCallId: string
  /** Milliseconds that `execute` of the tool took. */
  readonly durationMs: number
  /** What the tool has thrown. Its message can contain anything. Undefined if it has succeeded. */
  readonly error: unknown
}

/** A call has ended without an error. */
export interface CallEnded extends CallOver {
  /** `aborted` if the client left. */
  readonly status: 'ended' | 'aborted'
}

/** A call was rejected, or has failed. */
export interface CallFailed extends CallOver {
  /** `aborted` if the client left, or if the call was ended from outside. */
  readonly status: 'failed' | 'aborted'
  /** The error that the caller gets. */
  readonly error: LlmError
}

/** A rate limit or spending limit has rejected a call. */
export interface LimitRefused extends CallStarted {
  /** Of the code `rate_limit` or `quota`. Its details name the limit and the time to wait. */
  readonly error: LlmError
}

/** A prompt has read tokens from the prompt cache, or has found none. */
export interface CacheEvent extends CallStarted {
  /** Tokens of the prompt. */
  readonly tokens: number
}

/** What is done with a model: a pull, a push, or its creation. */
export type TransferKind = 'pull' | 'push' | 'create'

/** How far a transfer of a model has come. */
export interface TransferProgress {
  /** The object that `createLlm()` has returned. A process may have several. */
  readonly llm: object
  /** Which transfer it is. */
  readonly kind: TransferKind
  /** Name of the model, as the caller wrote it. */
  readonly model: string
  /** As in the API, such as `pulling manifest`. `success`, `failed` or `aborted` at the end. */
  readonly status: string
  /** Digest of the blob that the bytes belong to. */
  readonly digest?: string
  /** Bytes of the blob that are transferred. Absent between blobs. */
  readonly completedBytes?: number
  /** Size of the blob, in bytes. Absent between blobs. */
  readonly totalBytes?: number
  /** Whether the transfer is over. Each transfer has one such event. */
  readonly isLast: boolean
  /** Why the transfer has failed. Undefined unless it is the last event of a failed one. */
  readonly error: LlmError | undefined
}

/** An event of a model process, with the object that `createLlm()` has returned. */
export type OfLlm<Event> = WithLlm<Omit<Event, 'type'>>

/** An event of a model or a batch, with the object that `createLlm()` has returned. */
export type WithLlm<Event> = Event & { readonly llm: object }

/** The events by the names of their channels. */
export interface DiagnosticEvents {
  /** A route has answered an HTTP request, also one that began no call. */
  readonly 'modelmount:request:end': RequestEnded
  /** A call begins, before any check. */
  readonly 'modelmount:call:start': CallReceived
  /** A call has passed all checks and the queue, and goes to the engine. */
  readonly 'modelmount:call:admitted': CallAdmitted
  /** The model of a call loads, or evaluates its prompt. Of several answers, that of the first one. */
  readonly 'modelmount:call:progress': CallProgress
  /** The engine has generated the first output token. */
  readonly 'modelmount:call:first-token': CallFirstToken
  /** A call has ended, or its client has left. */
  readonly 'modelmount:call:end': CallEnded
  /** A call has failed, also one that was not admitted. */
  readonly 'modelmount:call:error': CallFailed
  /** Before the end of an answer: its prompt and its text. */
  readonly 'modelmount:call:content': CallContent
  /** `llm.chat()` has run a tool. */
  readonly 'modelmount:tool:end': ToolEnded
  /** A rate limit or a spending limit has refused a call. `call:error` follows. */
  readonly 'modelmount:limit:refused': LimitRefused
  /** A call has read tokens from the prompt cache, or used the state of an earlier prompt. */
  readonly 'modelmount:cache:hit': CacheEvent
  /** A call has written tokens to the prompt cache. */
  readonly 'modelmount:cache:write': CacheEvent
  /** A model has dropped saved states of prompts. */
  readonly 'modelmount:cache:evict': OfLlm<CacheEviction>
  /** How far a pull, a push or the creation of a model has come. */
  readonly 'modelmount:pull:progress': TransferProgress
  /** A batch was created in this process. */
  readonly 'modelmount:batch:create': WithLlm<BatchCreated>
  /** The items of a batch can run: this process has checked and stored them. */
  readonly 'modelmount:batch:start': WithLlm<BatchStarted>
  /** Items of a batch have ended in this process. */
  readonly 'modelmount:batch:item': WithLlm<BatchItemsEnded>
  /** A batch has ended in this process. */
  readonly 'modelmount:batch:end': WithLlm<BatchEnded>
  /** A model is loaded and ready. */
  readonly 'modelmount:model:load': OfLlm<ModelLoad>
  /** The app has released a model: after its keep-alive, for other load settings, or because the app closes. */
  readonly 'modelmount:model:unload': OfLlm<ModelEnd>
  /** A model had to make room for another one. */
  readonly 'modelmount:model:evict': OfLlm<ModelEnd>
  /** A model process has ended by itself, was killed, or was stuck. */
  readonly 'modelmount:model:crash': OfLlm<ModelEnd>
  /** A replica of a fleet gets calls from now on. */
  readonly 'modelmount:replica:join': OfLlm<ReplicaEvent>
  /** A replica is no longer in the list of its fleet, and its last call has ended. */
  readonly 'modelmount:replica:leave': OfLlm<ReplicaEvent>
  /** A replica has failed, and gets no calls for some time. */
  readonly 'modelmount:replica:eject': OfLlm<ReplicaEvent>
  /** A replica gets calls again. */
  readonly 'modelmount:replica:return': OfLlm<ReplicaEvent>
}
