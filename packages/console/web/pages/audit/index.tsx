/** Audit. */
import { Page } from '../../components/page.tsx'

export default function Audit() {
  return <Page title="Audit">Under construction.</Page>
}
