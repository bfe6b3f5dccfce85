/** Creates a model from a Modelfile. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { Button, ButtonLink } from '../../components/button.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { TextAreaField, TextField } from '../../components/form/field.tsx'
import { Form } from '../../components/form/form.tsx'
import { useNotify } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { modelsKey } from '../../llm/models.ts'
import { linkTo } from './links.ts'
import { toCreateBody } from './modelfile.ts'
import { followTransfer } from './pulls.ts'

export function CreateModel() {
  const [base] = useFilter('from')
  const [name, setName] = useState('')
  const [source, setSource] = useState(() => exampleOf(base || 'tiny'))
  const [status, setStatus] = useState('')
  const client = useQueryClient()
  const notify = useNotify()
  const [, navigate] = useLocation()
  const creation = useMutation({
    mutationFn: (body: object) =>
      followTransfer('llm/api/create', body, new AbortController().signal, (transfer) =>
        setStatus(transfer.status),
      ),
    onSuccess: async () => {
      notify(`Created ${name.trim()}.`)
      await client.invalidateQueries({ queryKey: modelsKey })
      navigate(linkTo(name.trim()))
    },
  })
  const [problems, setProblems] = useState<{ readonly name?: string; readonly source?: string }>({})
  const submit = (): void => {
    const found = check(name.trim(), source)
    setProblems('body' in found ? {} : found)
    if ('body' in found) creation.mutate(found.body)
  }
  return (
    <Page
      title="Create model"
      description="A model with settings of its own, based on another one. It takes almost no disk space."
      parent={{ href: '/models', title: 'Models' }}
    >
      <Form label="New model" isBusy={creation.isPending} onSubmit={submit}>
        <Card>
          <div class="form">
            <TextField
              label="Name"
              placeholder="my-model"
              spellcheck={false}
              value={name}
              error={problems.name}
              onChange={setName}
            />
            <TextAreaField
              label="Modelfile"
              hint="FROM names a model of this app, or one to pull. SYSTEM, PARAMETER, TEMPLATE and MESSAGE set defaults."
              class="code"
              rows={14}
              spellcheck={false}
              value={source}
              error={problems.source}
              onChange={setSource}
            />
            {creation.error && <ErrorMessage error={creation.error} />}
          </div>
        </Card>
        <div class="actions">
          <Button type="submit" kind="primary" isBusy={creation.isPending}>
            Create model
          </Button>
          <ButtonLink href="/models">Cancel</ButtonLink>
        </div>
        <p class="muted" role="status">
          {creation.isPending && `${status || 'Starting'}…`}
        </p>
      </Form>
    </Page>
  )
}

const exampleOf = (base: string): string =>
  [`FROM ${base}`, 'SYSTEM """You answer in one short sentence."""', 'PARAMETER temperature 0.7', ''].join(
    '\n',
  )

function check(
  name: string,
  source: string,
): { readonly body: object } | { readonly name?: string; readonly source?: string } {
  const nameProblem = name === '' ? 'Enter a name.' : undefined
  try {
    const body = toCreateBody(name, source)
    return nameProblem === undefined ? { body } : { name: nameProblem }
  } catch (error) {
    return { ...(nameProblem && { name: nameProblem }), source: (error as Error).message }
  }
}
