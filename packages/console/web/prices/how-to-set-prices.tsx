/** How the operator of the app sets prices. */
export const HowToSetPrices = () => (
  <>
    Set prices with the option <code>prices</code> of <code>createLlm()</code>, or with{' '}
    <code>--prices FILE</code> of <code>modelmount serve</code>.
  </>
)
