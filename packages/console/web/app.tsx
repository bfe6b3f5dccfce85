/** The console: its pages by hash route. */
import { Route, Router } from 'wouter-preact'
import { useHashLocation } from 'wouter-preact/use-hash-location'

export const App = () => (
  <Router hook={useHashLocation}>
    <Route path="/">Overview</Route>
  </Router>
)
