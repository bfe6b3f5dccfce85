/** The pages of models. */
import { Route, Switch } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { CreateModel } from './create-model.tsx'
import { ModelDetailsPage } from './model-details.tsx'
import { ModelList } from './model-list.tsx'
import './models.css'

/** Names of models contain slashes, so the address has them in its query: `/models/show?model=hf.co/a/b`. */
export default function Models() {
  const canChange = useCan('models')
  return (
    <Switch>
      {canChange && <Route path="/models/new" component={CreateModel} />}
      <Route path="/models/show" component={ModelDetailsPage} />
      <Route component={ModelList} />
    </Switch>
  )
}
