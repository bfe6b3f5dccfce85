/** Changes the settings of a key. */
import { useMutation } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Form, FormError } from '../../components/form/form.tsx'
import { useNotify } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { KeyFields, keyParams } from './key-fields.tsx'
import { checkForm, type FieldErrors, toChanges, toForm } from './key-form.ts'
import { focusFirstError } from './new-key.tsx'
import { useKey, useKeyChanged } from './queries.ts'

export function EditKey({ id }: { readonly id: string }) {
  const key = useKey(id)
  return (
    <Page title="Edit key" parent={{ href: `/keys/${id}`, title: key.data?.name ?? 'Key' }}>
      {key.error ? <ErrorMessage error={key.error} onRetry={() => void key.refetch()} /> : null}
      {key.data ? <EditForm of={key.data} /> : key.error ? null : <Loading />}
    </Page>
  )
}

function EditForm({ of: current }: { readonly of: ApiKey }) {
  // The key as the form shows it: a later answer of the server changes nothing that the viewer types.
  const [key] = useState(current)
  const [form, setForm] = useState(() => toForm(key))
  const [errors, setErrors] = useState<FieldErrors>({})
  const [, navigate] = useLocation()
  const [keyChanged, notify] = [useKeyChanged(), useNotify()]
  const change = useMutation({
    mutationFn: () =>
      read(admin.POST('/keys/{id}', { params: { path: { id: key.id } }, body: toChanges(form, key) })),
    onSuccess: (changed) => {
      keyChanged(changed)
      notify('Key saved.')
      navigate(`/keys/${key.id}`)
    },
  })
  const submit = (): void => {
    const found = checkForm(form)
    setErrors(found)
    if (Object.keys(found).length === 0) change.mutate()
    else focusFirstError()
  }
  return (
    <Form onSubmit={submit} isBusy={change.isPending} label="Key">
      <KeyFields form={form} onChange={setForm} errors={errors} error={change.error} />
      <FormError error={change.error} params={keyParams} />
      <div class="actions">
        <Button kind="primary" type="submit" isBusy={change.isPending}>
          Save
        </Button>
        <ButtonLink href={`/keys/${key.id}`}>Cancel</ButtonLink>
      </div>
    </Form>
  )
}
