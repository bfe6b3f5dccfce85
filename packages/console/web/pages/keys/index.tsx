/** Keys. */
import { Page } from '../../components/page.tsx'

export default function Keys() {
  return <Page title="Keys">Under construction.</Page>
}
