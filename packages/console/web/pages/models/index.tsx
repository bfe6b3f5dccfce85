/** Models. */
import { Page } from '../../components/page.tsx'

export default function Models() {
  return <Page title="Models">Under construction.</Page>
}
