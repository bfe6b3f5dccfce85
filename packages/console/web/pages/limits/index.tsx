/** Limits. */
import { Page } from '../../components/page.tsx'

export default function Limits() {
  return <Page title="Limits">Under construction.</Page>
}
