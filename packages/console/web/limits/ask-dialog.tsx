/** Asks for higher limits for the viewer's own key. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { BodyOf } from '../api/types.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../components/dialog.tsx'
import { TextAreaField } from '../components/form/field.tsx'
import { Form, FormError, fieldError } from '../components/form/form.tsx'
import { useNotify } from '../components/notices.tsx'
import { parseUsd } from '../format/money.ts'
import { formatCount } from '../format/numbers.ts'
import type { KeyLimits } from './limit-changes.ts'
import { LimitFields } from './limit-fields.tsx'
import { type LimitTexts, ownLimitPaths, parseLimitTexts } from './limit-form.ts'
import { askForLimits, limitRequestsKey } from './limit-requests.ts'
import { SpendingFields, type SpendingTexts } from './spending-fields.tsx'
import { describeSpendingLimit } from './spending-text.ts'

export interface AskDialogProps {
  /** The limits that apply now. Those that the key does not have cannot be raised. */
  readonly current: KeyLimits
  readonly onClose: () => void
}

interface AskForm {
  readonly texts: LimitTexts
  readonly spending: SpendingTexts
  readonly reason: string
}

export function AskDialog({ current, onClose }: AskDialogProps) {
  const { limits, spendingLimit } = current
  const [form, setForm] = useState<AskForm>({
    ...{ texts: {}, reason: '' },
    spending: { usd: '', period: spendingLimit?.period ?? 'month' },
  })
  const [isChecked, setIsChecked] = useState(false)
  const [client, notify] = [useQueryClient(), useNotify()]
  const { body, errors } = readForm(form)
  const asking = useMutation({
    mutationFn: askForLimits,
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: limitRequestsKey })
      notify('Request sent.')
      onClose()
    },
  })
  const hasErrors = Object.keys(errors).length > 0
  const submit = (): void => {
    setIsChecked(true)
    if (body && !hasErrors) asking.mutate(body)
  }
  const errorOf = (param: string): string | undefined =>
    (isChecked ? errors[param] : undefined) ?? fieldError(asking.error, param)
  return (
    <Dialog title="Ask for higher limits" onClose={onClose} isWide>
      <Form onSubmit={submit} isBusy={asking.isPending} label="Higher limits">
        <DialogBody>
          <p class="muted">Fill in the limits to raise. An administrator approves or refuses the request.</p>
          {spendingLimit && (
            <SpendingFields
              texts={form.spending}
              onChange={(spending) => setForm({ ...form, spending })}
              error={errorOf('spendingLimit')}
              hint={`Now ${describeSpendingLimit(spendingLimit)}.`}
              placeholder="Unchanged"
            />
          )}
          <LimitFields
            texts={form.texts}
            onChange={(texts) => setForm({ ...form, texts })}
            errorOf={(path) => errorOf(`limits.${path}`)}
            names={ownLimitPaths.filter((name) => limits[name] !== undefined)}
            hintOf={(name) => `Now ${formatCount(limits[name] ?? 0)}.`}
            placeholder="Unchanged"
          />
          <TextAreaField
            label="Reason"
            hint="What you need the limits for."
            value={form.reason}
            onChange={(reason) => setForm({ ...form, reason })}
            error={errorOf('reason')}
            maxLength={2_000}
          />
          {isChecked && !body && !hasErrors && (
            <p class="field-error" role="alert">
              Fill in at least one limit.
            </p>
          )}
          <FormError error={asking.error} params={['limits', 'spendingLimit', 'reason']} />
        </DialogBody>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={asking.isPending}>
            Send request
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}

/** @returns `body` is undefined if nothing is asked for. `errors` has a message by the server's name of the field */
function readForm({ texts, spending, reason }: AskForm): {
  readonly body: BodyOf<'createLimitRequest'> | undefined
  readonly errors: Readonly<Record<string, string>>
} {
  const { limits, errors } = parseLimitTexts(texts)
  const usd = spending.usd.trim().replace('$', '')
  const isInvalid = usd !== '' && parseUsd(usd) === undefined
  const hasAny = limits !== undefined || usd !== ''
  return {
    body: hasAny
      ? {
          ...(limits && { limits }),
          ...(usd !== '' && { spendingLimit: { usd, period: spending.period } }),
          ...(reason.trim() !== '' && { reason: reason.trim() }),
        }
      : undefined,
    errors: {
      ...Object.fromEntries(Object.entries(errors).map(([path, message]) => [`limits.${path}`, message])),
      ...(isInvalid && { spendingLimit: 'Expected dollars, such as 25 or 12.50.' }),
    },
  }
}
