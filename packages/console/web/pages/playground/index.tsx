/** A chat with a model through one of the three APIs. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useCan } from '../../api/session.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Page } from '../../components/page.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { canChat, findModel, loadedQuery, type Model, modelsQuery } from '../../llm/models.ts'
import { ask, changeSettings, clearChat, type Turn, turnsToAsk, useChat } from './chat.ts'
import { CodeDialog } from './code-dialog.tsx'
import { Composer } from './composer.tsx'
import { Conversation } from './conversation.tsx'
import './playground.css'
import { type SettingErrors, type Settings, toRequest } from './settings.ts'
import { SettingsPanel } from './settings-panel.tsx'
import { pendingCalls, ToolResults } from './tool-results.tsx'

export default function Playground() {
  const models = useQuery(modelsQuery)
  if (models.data === undefined) {
    return (
      <Page title="Playground">
        {models.error ? (
          <ErrorMessage error={models.error} onRetry={() => void models.refetch()} />
        ) : (
          <Loading />
        )}
      </Page>
    )
  }
  const usable = models.data.filter(canChat)
  return usable.length === 0 ? <NoModels /> : <ChatPage models={usable} />
}

function NoModels() {
  const canPull = useCan('models')
  return (
    <Page title="Playground">
      <EmptyState
        title="There is no model to chat with"
        icon="models"
        actions={
          canPull && (
            <ButtonLink href="/models?pull=1" kind="primary" icon="download">
              Pull a model
            </ButtonLink>
          )
        }
      >
        <p>
          {canPull
            ? 'Pull a model from a registry, or install the package '
            : 'Ask whoever runs this app for a model, such as the package '}
          <code>@modelmount/tiny-model</code>, a small one for first tries.
        </p>
      </EmptyState>
    </Page>
  )
}

function ChatPage({ models }: { readonly models: readonly Model[] }) {
  const [{ settings: stored, turns, running, error }, client] = useChat()
  const [linked, setLinked] = useFilter('model')
  const settings = { ...stored, model: useModelName(models, [linked, stored.model]) }
  const [draft, setDraft] = useState('')
  const [code, setCode] = useFilter('code')
  const parsed = toRequest(settings, messagesOf(turns, draft))
  const errors: SettingErrors = 'errors' in parsed ? parsed.errors : {}
  const askWith = (asked: readonly Turn[]): void => {
    const result = toRequest(settings, messagesOf(asked))
    if ('request' in result) void ask(client, settings.api, result.request, asked)
  }
  const calls = running ? [] : pendingCalls(turns)
  return (
    <Page
      title="Playground"
      description="Try a model through one of the three APIs. Calls count towards your limits and spending."
      actions={
        <>
          <Button disabled={turns.length === 0 && !running} onClick={() => clearChat(client)}>
            Clear
          </Button>
          <Button icon="copy" disabled={!('request' in parsed)} onClick={() => setCode('1')}>
            Code
          </Button>
        </>
      }
    >
      <div class="playground">
        <SettingsPanel
          settings={settings}
          errors={errors}
          models={models}
          onChange={(changes) => {
            if (changes.model !== undefined) setLinked('')
            changeSettings(client, changes)
          }}
        />
        <div class="chat">
          <Conversation turns={turns} running={running} />
          {error !== undefined && <ErrorMessage error={error} onRetry={() => askWith(turnsToAsk(turns))} />}
          {calls.length > 0 ? (
            <ToolResults calls={calls} onSend={(results) => askWith([...turns, ...results])} />
          ) : (
            <Composer
              draft={draft}
              onDraft={setDraft}
              isRunning={running !== undefined}
              problem={problemOf(errors)}
              onStop={() => running?.controller.abort()}
              onSend={(text) => {
                setDraft('')
                askWith([...turns, { message: { role: 'user', text } }])
              }}
              onAskAgain={
                turns.at(-1)?.message.role === 'assistant' ? () => askWith(turnsToAsk(turns)) : undefined
              }
            />
          )}
        </div>
      </div>
      {code !== '' && 'request' in parsed && (
        <CodeDialog api={settings.api} request={parsed.request} onClose={() => setCode('')} />
      )}
    </Page>
  )
}

/** The first of the wanted models that exists, or else one that is in memory. */
function useModelName(models: readonly Model[], wanted: readonly string[]): string {
  const loaded = useQuery({ ...loadedQuery, refetchInterval: false }).data ?? []
  const names = models.map(({ name }) => name)
  const found = wanted.map((name) => findModel(models, name)?.name).find((name) => name !== undefined)
  return found ?? loaded.find(({ name }) => names.includes(name))?.name ?? names[0] ?? ''
}

/** The messages of a request. Without any, code shows a greeting. */
const messagesOf = (turns: readonly Turn[], draft = '') => {
  const messages = turns.map(({ message }) => message)
  const isAnswered = messages.at(-1)?.role !== 'user'
  const text = draft.trim() || (messages.length === 0 ? 'Hello' : '')
  return text !== '' && isAnswered ? [...messages, { role: 'user' as const, text }] : messages
}

const names: Readonly<Partial<Record<keyof Settings, string>>> = {
  temperature: 'Temperature',
  maxTokens: 'Max. tokens',
  seed: 'Seed',
  tools: 'Tools',
  schema: 'JSON Schema',
}

/** Why nothing can be sent. */
function problemOf(errors: SettingErrors): string | undefined {
  const [first] = Object.entries(errors)
  return first && `${names[first[0] as keyof Settings]}: ${first[1]}`
}
