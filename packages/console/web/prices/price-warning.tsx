/** Says which models have no price, and how to set one. */
import { Icon } from '../components/icon.tsx'
import { listNames } from './prices.ts'

/** @param models without a price. Nothing is shown without any */
export const PriceWarning = ({ models }: { readonly models: readonly string[] }) =>
  models.length === 0 ? null : (
    <div class="message warning">
      <Icon name="warning" />
      <p>
        A key with a spending limit cannot use models without a price: {listNames(models)}. <HowToSetPrices />
      </p>
    </div>
  )

/** How the operator of the app sets prices. */
export const HowToSetPrices = () => (
  <>
    Set prices with the option <code>prices</code> of <code>createLlm()</code>, or with{' '}
    <code>--prices FILE</code> of <code>modelmount serve</code>, such as{' '}
    <code>{'{"*": {"inputPerMillionUsd": 0.5, "outputPerMillionUsd": 2}}'}</code> for all models.
  </>
)
