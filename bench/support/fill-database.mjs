// Fills a database with keys, calls and day sums, with one statement per table. It writes to the tables of
// an opened database directly, so it works with every version of the code that has these columns.

/** Rows of calls are spread over so many days, ending today. Those older than 90 days are due for deletion. */
export const days = 100
/** Sums of another year and a half, without rows of calls, so that some are older than a year. */
const olderDays = 550

/**
 * @param execute runs one SQL statement, without parameters
 * @param dialect the parts of SQL that differ: `series(n)`, a table `s (n)` of the numbers from 0 to n - 1;
 *   `day(ms)`, the day of a time
 */
export async function fillDatabase(execute, dialect, { keys, calls, now }) {
  const { series, day } = dialect
  const callsPerKey = Math.round(calls / keys)
  const hourMs = 3_600_000
  await execute(`INSERT INTO modelmount_keys (id, name, tenant, hint, granted, created_at)
    SELECT 'key_bench' || n, 'Key ' || n, CASE WHEN n % 2 = 0 THEN 'tenant ' || (n % 2000) END, 'sk-mm-…',
      '{"scopes":["inference"],"limits":{"requestsPerMinute":60}}', ${now - days * 24 * hourMs} + n
    FROM ${series(keys)}`)
  await execute(`INSERT INTO modelmount_key_secrets (public_id, key_id, hash)
    SELECT 'bench' || n, 'key_bench' || n, '' FROM ${series(keys)}`)
  // The calls of a key are on different days. All calls of a key use one of five models.
  await execute(`INSERT INTO modelmount_calls (id, at, caller, tenant, key_name, model, dialect, input_tokens,
      cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens, nano_usd, priced, status, duration_ms)
    SELECT 'chatcmpl-' || n, ${now} - (n / ${keys} * ${Math.floor(days / callsPerKey)} + n % 5) * ${24 * hourMs} - n % ${hourMs},
      'key_bench' || (n % ${keys}), CASE WHEN n % 2 = 0 THEN 'tenant ' || (n % ${keys} % 2000) ELSE 'key_bench' || (n % ${keys}) END,
      'Key ' || (n % ${keys}), 'model-' || (n % 5), 'openai', 100 + n % 900, n % 50, 0, 20 + n % 400, 0,
      1000 * (100 + n % 900), 1, 'ended', 500 + n % 4000
    FROM ${series(calls)}`)
  const sums = `sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens),
    sum(undelivered_tokens), sum(nano_usd)`
  await execute(`INSERT INTO modelmount_usage_days (day, caller, model, tenant, key_name, calls, input_tokens,
      cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens, nano_usd, unpriced_calls)
    SELECT ${day('at')}, caller, model, max(tenant), max(key_name), count(*), ${sums}, 0
    FROM modelmount_calls GROUP BY ${day('at')}, caller, model`)
  await execute(`INSERT INTO modelmount_usage_days (day, caller, model, tenant, key_name, calls, input_tokens,
      cached_input_tokens, cache_write_tokens, output_tokens, undelivered_tokens, nano_usd, unpriced_calls)
    SELECT ${day(`(${now} - ${24 * hourMs} * (${days} + n % ${olderDays}))`)}, 'key_bench' || n, 'model-' || (n % 5),
      CASE WHEN n % 2 = 0 THEN 'tenant ' || (n % 2000) ELSE 'key_bench' || n END, 'Key ' || n, 5, 500, 0, 0, 100, 0, 500000, 0
    FROM ${series(keys)}`)
}

/** Adds the sums over time of these calls: per day, and per hour of the last nine days. Of SQLite only. */
export async function fillTraffic(execute, { now }) {
  const hourMs = 3_600_000
  const bucket = (ms) => `CAST(round(ln(${ms}) / ln(1.2)) AS INTEGER)`
  for (const [width, age] of [
    [hourMs, 9 * 24 * hourMs],
    [24 * hourMs, days * 24 * hourMs],
  ])
    for (const isTotal of [0, 1]) {
      const caller = isTotal ? "''" : 'caller'
      const columns = `${width}, ${isTotal}, at - at % ${width}, ${caller}, model`
      const since = `FROM modelmount_calls WHERE at > ${now - age} GROUP BY at - at % ${width}, ${caller}, model`
      await execute(`INSERT INTO modelmount_traffic (width_ms, is_total, start, caller, model, tenant, calls, errors,
          input_tokens, cached_input_tokens, output_tokens, nano_usd)
        SELECT ${columns}, ${isTotal ? 'NULL' : 'max(tenant)'}, count(*), sum(id LIKE '%77'), sum(input_tokens),
          sum(cached_input_tokens), sum(output_tokens), sum(nano_usd) ${since}`)
      for (const [measure, time] of [
        ['duration', 'duration_ms'],
        ['first_token', 'duration_ms / 10'],
      ])
        await execute(`INSERT INTO modelmount_traffic_times (width_ms, is_total, start, caller, model, measure, bucket, calls)
          SELECT ${columns}, '${measure}', ${bucket(time)}, count(*) ${since}, ${bucket(time)}`)
    }
}

export const sqlite = {
  series: (count) =>
    `(WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n + 1 < ${count}) SELECT n FROM s)`,
  day: (ms) => `strftime('%Y-%m-%d', ${ms} / 1000, 'unixepoch')`,
}

export const postgres = {
  series: (count) => `generate_series(CAST(0 AS BIGINT), ${count} - 1) AS s (n)`,
  day: (ms) => `to_char(to_timestamp(${ms} / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
}
