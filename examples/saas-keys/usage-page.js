/** The page with what a customer has used this month. */

export function renderUsage({ customer, plan, month, keys }) {
  const rows = keys.map(({ key, usage }) => {
    const cells = [
      key.name,
      usage?.calls ?? 0,
      sum(Object.values(usage?.tokens ?? {})),
      `${dollars(usage?.nanoUsd ?? 0)} of ${key.spendingLimit ? `$${Number(key.spendingLimit.usd).toFixed(2)}` : 'no limit'}`,
    ]
    return `<tr>${cells.map((cell) => `<td>${escapeHtml(String(cell))}</td>`).join('')}</tr>`
  })
  return `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Usage</title></head>
  <body>
    <h1>Usage of ${escapeHtml(customer)} since ${month}, plan ${plan}</h1>
    <table>
      <thead><tr><th>Key</th><th>Calls</th><th>Tokens</th><th>Cost</th></tr></thead>
      <tbody>
        ${rows.join('\n        ')}
      </tbody>
    </table>
  </body>
</html>
`
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0)

/** A nano-dollar is a billionth of a dollar. */
const dollars = (nanoUsd) => `$${(Number(nanoUsd) / 1e9).toFixed(6)}`

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text) => text.replace(/[&<>"']/g, (character) => entities[character])
