/** Usage. */
import { Page } from '../../components/page.tsx'

export default function Usage() {
  return <Page title="Usage">Under construction.</Page>
}
