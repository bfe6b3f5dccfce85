/** Log in with an API key, or with a one-time token from the address. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../api/errors.ts'
import { logIn, sessionKey } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Loading } from '../components/empty-state.tsx'
import { ErrorMessage } from '../components/error-message.tsx'
import { TextField } from '../components/form/field.tsx'
import { Form } from '../components/form/form.tsx'

/** @param token one-time token, already removed from the address */
export function Login({ token }: { readonly token: string | undefined }) {
  const client = useQueryClient()
  const [apiKey, setApiKey] = useState('')
  const login = useMutation({
    mutationFn: logIn,
    onSuccess: () => client.invalidateQueries({ queryKey: sessionKey }),
    onSettled: () => setApiKey(''),
    // The cache of mutations would keep the key otherwise.
    gcTime: 0,
  })
  const { mutate } = login
  useEffect(() => {
    document.title = 'Log in · Modelmount'
    if (token !== undefined) mutate({ token })
  }, [token, mutate])
  const isTokenSent = token !== undefined && !login.isError
  return (
    <main class="login">
      <div class="login-box">
        <img src="./icon.svg" alt="" width="36" height="36" />
        <h1>Log in to Modelmount</h1>
        {isTokenSent ? (
          <Loading label="Logging in…" />
        ) : (
          <Form onSubmit={() => mutate({ apiKey: apiKey.trim() })} isBusy={login.isPending}>
            {login.error && <ErrorMessage error={explain(login.error, token !== undefined)} />}
            <TextField
              label="API key"
              // No `password`: browsers would offer to store the key.
              type="text"
              class="masked"
              spellcheck={false}
              autoCapitalize="none"
              required
              autofocus
              value={apiKey}
              onChange={setApiKey}
              hint={
                <>
                  A key with the scope <code>admin</code> or <code>admin:read</code> shows everything. Other
                  keys show their own usage and limits.
                </>
              }
            />
            <Button kind="primary" type="submit" isBusy={login.isPending}>
              {login.isPending ? 'Logging in…' : 'Log in'}
            </Button>
          </Form>
        )}
      </div>
    </main>
  )
}

function explain(error: Error, isToken: boolean): Error {
  if (!(error instanceof ApiError) || error.status !== 401 || !isToken) return error
  return new Error(
    'This login link was used or has expired. Use an API key, or start the server again for a new link.',
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
