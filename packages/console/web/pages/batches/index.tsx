/** The pages of batches. */
import { Route, Switch } from 'wouter-preact'
import { BatchDetails } from './batch-details.tsx'
import { BatchList } from './batch-list.tsx'
import './batches.css'

export default function Batches() {
  return (
    <Switch>
      <Route path="/batches/:id">{({ id }) => <BatchDetails id={id} />}</Route>
      <Route component={BatchList} />
    </Switch>
  )
}
