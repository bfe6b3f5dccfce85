/** Batches. */
import { Page } from '../../components/page.tsx'

export default function Batches() {
  return <Page title="Batches">Under construction.</Page>
}
