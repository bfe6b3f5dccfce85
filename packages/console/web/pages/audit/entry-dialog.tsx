/** One change, with what was changed. */
import { Link } from 'wouter-preact'
import type { AuditEntry } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { Fact, Facts } from '../../components/page.tsx'
import { CodeBlock } from '../../components/text/code.tsx'
import { Time } from '../../components/text/time.tsx'
import { nameAction } from './audit-texts.ts'

/** Who made a change. */
export const Who = ({ entry: { key, caller } }: { readonly entry: AuditEntry }) =>
  key ? <Link href={`/keys/${key.id}`}>{key.name}</Link> : <span>{caller}</span>

export const EntryDialog = ({
  entry,
  onClose,
}: {
  readonly entry: AuditEntry
  readonly onClose: () => void
}) => {
  const { action, at, target, tenant, changes, error } = entry
  return (
    <Dialog title={nameAction(action)} onClose={onClose} isWide>
      <DialogBody>
        <Facts>
          <Fact name="Time">
            <Time at={at} hasSeconds />
          </Fact>
          <Fact name="By">
            <Who entry={entry} />
          </Fact>
          {target !== undefined && (
            <Fact name="Target">
              {target.startsWith('key_') ? (
                <Link href={`/keys/${target}`} class="code">
                  {target}
                </Link>
              ) : (
                <span class="code">{target}</span>
              )}
            </Fact>
          )}
          {tenant !== undefined && <Fact name="Tenant">{tenant}</Fact>}
          <Fact name="Operation">
            <span class="code">{action}</span>
          </Fact>
        </Facts>
        {error !== undefined && (
          <div class="message danger">
            <p>
              Failed with the error <code>{error}</code>.
            </p>
          </div>
        )}
        {Object.keys(changes).length > 0 && (
          <CodeBlock label="Changes" text={JSON.stringify(changes, undefined, 2)} />
        )}
      </DialogBody>
      <DialogActions>
        <Button onClick={onClose}>Close</Button>
      </DialogActions>
    </Dialog>
  )
}
