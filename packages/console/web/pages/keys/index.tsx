/** The pages of API keys. */
import { Route, Switch } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { EditKey } from './edit-key.tsx'
import { KeyDetails } from './key-details.tsx'
import { KeyList } from './key-list.tsx'
import { NewKey } from './new-key.tsx'

export default function Keys() {
  const canChange = useCan('admin')
  return (
    <Switch>
      {canChange && <Route path="/keys/new" component={NewKey} />}
      {canChange && <Route path="/keys/:id/edit">{({ id }) => <EditKey id={id} />}</Route>}
      <Route path="/keys/:id">{({ id }) => <KeyDetails id={id} />}</Route>
      <Route component={KeyList} />
    </Switch>
  )
}
