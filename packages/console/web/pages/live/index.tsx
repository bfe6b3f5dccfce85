/** Live calls. */
import { Page } from '../../components/page.tsx'

export default function LiveCalls() {
  return <Page title="Live calls">Under construction.</Page>
}
