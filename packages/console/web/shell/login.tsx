/** Log in with an API key, or with a one-time token from the address. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useEffect, useState } from 'preact/hooks'
import { type LoggedOut, logIn, sessionKey } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Loading } from '../components/empty-state.tsx'
import { ErrorMessage } from '../components/error-message.tsx'
import { TextField } from '../components/form/field.tsx'
import { Form } from '../components/form/form.tsx'

export interface LoginProps extends LoggedOut {
  /** One-time token, already removed from the address. */
  readonly token: string | undefined
}

export function Login({ token, logins, message }: LoginProps) {
  const client = useQueryClient()
  const login = useMutation({
    mutationFn: logIn,
    onSuccess: () => client.invalidateQueries({ queryKey: sessionKey }),
    // The cache of mutations would keep the key otherwise.
    gcTime: 0,
  })
  const { mutate } = login
  useEffect(() => {
    document.title = 'Log in · Modelmount'
    if (token !== undefined) mutate({ token })
  }, [token, mutate])
  return (
    <main class="login">
      <div class="login-box">
        <img src="./icon.svg" alt="" width="36" height="36" />
        <h1>Log in to Modelmount</h1>
        {login.error ? (
          <ErrorMessage error={login.error} />
        ) : (
          message !== undefined && token === undefined && <p class="message">{message}</p>
        )}
        {token !== undefined && !login.isError ? (
          <Loading label="Logging in…" />
        ) : logins.key ? (
          <>
            {token !== undefined && <HowToGetLink />}
            <KeyForm onSubmit={(key) => mutate({ key })} isBusy={login.isPending || login.isSuccess} />
          </>
        ) : logins.link ? (
          <>
            {token === undefined && (
              <p>
                Open the login link that the app has printed when it started. It works once, within ten
                minutes.
              </p>
            )}
            <HowToGetLink />
          </>
        ) : (
          <p>Log in to the app first, then reload this page.</p>
        )}
      </div>
    </main>
  )
}

const HowToGetLink = () => (
  <p>
    For another link, start <code>modelmount serve --console</code> again. An app prints one with{' '}
    <code>create()</code> of its <code>LoginLinks</code>.
  </p>
)

function KeyForm({
  onSubmit,
  isBusy,
}: {
  readonly onSubmit: (key: string) => void
  readonly isBusy: boolean
}) {
  const [key, setKey] = useState('')
  const submit = (): void => {
    if (key.trim() === '') return
    onSubmit(key.trim())
    setKey('')
  }
  return (
    <Form onSubmit={submit} isBusy={isBusy}>
      <TextField
        label="API key"
        // No `password`: browsers would offer to store the key.
        type="text"
        class="masked"
        spellcheck={false}
        autoCapitalize="none"
        required
        autofocus
        value={key}
        onChange={setKey}
        hint={
          <>
            A key with the scope <code>admin</code> or <code>admin:read</code> shows everything. Other keys
            show their own usage and limits.
          </>
        }
      />
      <Button kind="primary" type="submit" isBusy={isBusy}>
        {isBusy ? 'Logging in…' : 'Log in'}
      </Button>
    </Form>
  )
}

/** Takes the one-time token of `#/login?token=…` out of the address and the history. */
export function takeToken(): string | undefined {
  const [path, query] = location.hash.split('?')
  if (path !== '#/login') return undefined
  const token = new URLSearchParams(query).get('token') ?? undefined
  history.replaceState(null, '', '#/')
  return token
}
