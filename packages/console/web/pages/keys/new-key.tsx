/** Creates a key, and shows its secret once. */
import { useMutation } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { admin, read } from '../../api/client.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { Form, FormError } from '../../components/form/form.tsx'
import { Page } from '../../components/page.tsx'
import { KeyFields, keyParams } from './key-fields.tsx'
import { checkForm, emptyForm, type FieldErrors, toSettings } from './key-form.ts'
import { useKeyChanged } from './queries.ts'
import { SecretDialog } from './secret-dialog.tsx'

export function NewKey() {
  const [form, setForm] = useState(emptyForm)
  const [errors, setErrors] = useState<FieldErrors>({})
  const [, navigate] = useLocation()
  const keyChanged = useKeyChanged()
  const creation = useMutation({
    mutationFn: () => read(admin.POST('/keys', { body: toSettings(form) })),
    onSuccess: ({ key }) => keyChanged(key),
    // The cache of mutations would keep the secret otherwise.
    gcTime: 0,
  })
  const submit = (): void => {
    const found = checkForm(form)
    setErrors(found)
    if (Object.keys(found).length === 0) creation.mutate()
    else focusFirstError()
  }
  return (
    <Page title="Create key" parent={{ href: '/keys', title: 'Keys' }}>
      <Form onSubmit={submit} isBusy={creation.isPending} label="New key">
        <KeyFields form={form} onChange={setForm} errors={errors} error={creation.error} />
        <FormError error={creation.error} params={keyParams} />
        <div class="actions">
          <Button kind="primary" type="submit" isBusy={creation.isPending}>
            Create key
          </Button>
          <ButtonLink href="/keys">Cancel</ButtonLink>
        </div>
      </Form>
      {creation.data && (
        <SecretDialog
          title="Key created"
          secret={creation.data.secret}
          of={creation.data.key}
          onClose={() => navigate(`/keys/${creation.data.key.id}`)}
        />
      )}
    </Page>
  )
}

/** After the errors are rendered. */
export const focusFirstError = (): void => {
  requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-invalid]')?.focus())
}
