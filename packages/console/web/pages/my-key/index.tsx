/** My key. */
import { Page } from '../../components/page.tsx'

export default function MyKey() {
  return <Page title="My key">Under construction.</Page>
}
