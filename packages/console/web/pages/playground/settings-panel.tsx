/** Model, API and parameters of the next request. */
import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CheckField, SelectField, TextAreaField, TextField } from '../../components/form/field.tsx'
import { type Model, useIsBuiltIn } from '../../llm/models.ts'
import { defaultMaxTokens } from './apis/anthropic.ts'
import type { ApiName } from './apis/api.ts'
import { apis } from './apis/index.ts'
import { exampleSchema, exampleTools, type SettingErrors, type Settings } from './settings.ts'

export interface SettingsPanelProps {
  readonly settings: Settings
  readonly errors: SettingErrors
  readonly models: readonly Model[]
  readonly onChange: (changes: Partial<Settings>) => void
}

const apiOptions = Object.entries(apis).map(([name, { title }]) => [name, title] as const)

export function SettingsPanel(props: SettingsPanelProps) {
  const { settings, models, onChange } = props
  const isBuiltIn = useIsBuiltIn()
  return (
    <section class="playground-settings" aria-label="Settings">
      <div class="form-row">
        <SelectField
          label="Model"
          value={settings.model}
          onChange={(model) => onChange({ model })}
          options={models.map(({ name }) => [name, isBuiltIn(name) ? `${name} (built in)` : name] as const)}
        />
        <SelectField
          label="API"
          hint={apis[settings.api].path}
          value={settings.api}
          onChange={(api) => onChange({ api: api as ApiName })}
          options={apiOptions}
        />
      </div>
      <MoreSettings {...props} />
    </section>
  )
}

const thinkingOptions = [
  ['', 'Default of the API'],
  ['on', 'On'],
  ['off', 'Off'],
] as const

/** Open at first where there is room beside the conversation. */
function MoreSettings(props: SettingsPanelProps) {
  const [isOpen] = useState(() => matchMedia('(min-width: 64rem)').matches)
  const { settings, models, errors, onChange } = props
  const model = models.find(({ name }) => name === settings.model)
  return (
    <details class="more" open={isOpen}>
      <summary>Prompt, parameters, tools</summary>
      <div class="form">
        <TextAreaField
          label="System prompt"
          placeholder="Such as: Answer in one sentence."
          value={settings.system}
          onChange={(system) => onChange({ system })}
        />
        <Parameters {...props} />
        {model?.capabilities?.includes('thinking') && (
          <SelectField
            label="Thinking"
            value={settings.thinking}
            onChange={(thinking) => onChange({ thinking: thinking as Settings['thinking'] })}
            options={thinkingOptions}
          />
        )}
        <JsonField
          name="tools"
          label="Tools"
          hint={
            model?.capabilities?.includes('tools') === false
              ? 'This model does not support tools.'
              : 'A JSON list of tools with name, description and parameters.'
          }
          example={exampleTools}
          value={settings.tools}
          error={errors.tools}
          onChange={onChange}
        />
        <JsonField
          name="schema"
          label="JSON Schema of the answer"
          hint="The answer is JSON that follows the schema."
          example={exampleSchema}
          value={settings.schema}
          error={errors.schema}
          onChange={onChange}
        />
      </div>
    </details>
  )
}

function Parameters({ settings, errors, onChange }: SettingsPanelProps) {
  const isAnthropic = settings.api === 'anthropic'
  return (
    <>
      <div class="parameters">
        <TextField
          label="Temperature"
          inputMode="decimal"
          placeholder="Default"
          value={settings.temperature}
          error={errors.temperature}
          onChange={(temperature) => onChange({ temperature })}
        />
        <TextField
          label="Max. tokens"
          inputMode="numeric"
          placeholder={isAnthropic ? String(defaultMaxTokens) : 'No limit'}
          value={settings.maxTokens}
          error={errors.maxTokens}
          onChange={(maxTokens) => onChange({ maxTokens })}
        />
        <TextField
          label="Seed"
          inputMode="numeric"
          placeholder={isAnthropic ? 'Not used' : 'Random'}
          disabled={isAnthropic}
          value={isAnthropic ? '' : settings.seed}
          error={errors.seed}
          onChange={(seed) => onChange({ seed })}
        />
      </div>
      {isAnthropic && (
        <CheckField
          label="Cache the prompt"
          hint="Sends cache_control, which makes the API report the tokens of the cache."
          isChecked={settings.isCached}
          onChange={(isCached) => onChange({ isCached })}
        />
      )}
    </>
  )
}

interface JsonFieldProps {
  readonly name: 'tools' | 'schema'
  readonly label: string
  readonly hint: string
  readonly example: string
  readonly value: string
  readonly error: string | undefined
  readonly onChange: (changes: Partial<Settings>) => void
}

const JsonField = ({ name, label, hint, example, value, error, onChange }: JsonFieldProps) => (
  <div class="json-field">
    <TextAreaField
      label={label}
      hint={hint}
      error={error}
      class="code"
      rows={value === '' ? 2 : 8}
      spellcheck={false}
      value={value}
      onChange={(text) => onChange({ [name]: text })}
    />
    <Button kind="plain" isSmall onClick={() => onChange({ [name]: value === '' ? example : '' })}>
      {value === '' ? 'Example' : 'Remove'}
      <span class="visually-hidden"> ({label})</span>
    </Button>
  </div>
)
