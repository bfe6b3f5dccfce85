/** Overview. */
import { Page } from '../../components/page.tsx'

export default function Overview() {
  return <Page title="Overview">Under construction.</Page>
}
