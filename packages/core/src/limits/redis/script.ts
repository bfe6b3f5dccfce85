/**
 * The Lua script that Redis runs for each operation, as one atomic step. Redis computes in doubles, as JavaScript does.
 * So the functions of `bucketFunctions` return the same numbers as those of the same names in `bucket.ts`.
 */
import { createHash } from 'node:crypto'
import { leaseMs } from '../../storage/leases.ts'

export const bucketFunctions = `
local function msUntil(target, level, size)
  local debtMs = math.max(0, math.ceil(-level / size.limit))
  local paidLevel = level + debtMs * size.limit
  return debtMs + math.max(0, math.ceil((target - paidLevel) / size.limit))
end

local function fullLevel(size) return size.limit * size.windowMs end

local function levelAt(bucket, size, now)
  local elapsedMs = math.max(0, now - bucket.at)
  if elapsedMs >= msUntil(fullLevel(size), bucket.level, size) then return fullLevel(size) end
  local halfMs = math.floor(elapsedMs / 2)
  return bucket.level + halfMs * size.limit + (elapsedMs - halfMs) * size.limit
end

local function levelAfter(level, size, units)
  return math.max(-9007199254740991, math.min(level - units * size.windowMs, fullLevel(size)))
end

local function waitMs(level, size, units)
  if units == 0 then return 0 end
  return msUntil(math.min(units * size.windowMs, fullLevel(size)), level, size)
end

-- All digits: Lua itself writes 14 of them.
local function digits(number) return string.format('%.0f', number) end
`

/** One operation of the limiter. The script gets it as JSON, in its only argument. */
export interface ScriptRequest {
  /** The time of a test's clock, in ms. @default the clock of the server */
  readonly now?: number | undefined
  /** Whether limits may refuse the call. Otherwise the units are taken into debt. */
  readonly isChecked: boolean
  /** In the order of their keys. */
  readonly buckets: readonly {
    readonly limit: number
    readonly windowMs: number
    /** Taken from the bucket, or given back if negative. */
    readonly units: number
  }[]
  /** In the order of their keys, which follow those of the buckets. */
  readonly running: readonly {
    /** Maximum of running calls, for a request that is checked. */
    readonly limit?: number | undefined
    /** Leases that the call has renewed. */
    readonly renewed: readonly string[]
  }[]
  /** The lease that an admitted call adds to each of `running`. */
  readonly added?: string | undefined
  /** The lease that is removed from each of `running`. */
  readonly removed?: string | undefined
}

/**
 * Clients such as ioredis send a command again after the connection is lost, although the server may have run it. Until
 * this time has passed, the repeated command gets the first reply. It is longer than the 10 s for which ioredis repeats.
 */
const rememberMs = 15_000

/** Keys with the times of a test's clock expire this much later, because the server expires keys by its own clock. */
const testClockMs = 3_600_000

/**
 * Keys: one for the reply of this operation, one for each bucket, one for each subject with a limit of running calls.
 * A bucket is the text `LEVEL AT`. It expires when it is full. Running calls are a sorted set of leases by expiry time.
 *
 * Returns the time, the level of each bucket before the operation, and for each of `running` the number of its leases
 * and the last expiry time. The numbers are a text, so that no client rounds or converts them.
 */
const source = `${bucketFunctions}
local request = cjson.decode(ARGV[1])
local replyKey, buckets, running = KEYS[1], request.buckets, request.running

local earlier = redis.call('GET', replyKey)
if earlier then return earlier end

local time = redis.call('TIME')
local now = request.now or time[1] * 1000 + math.floor(time[2] / 1000)
local extraMs = request.now and ${testClockMs} or 0

-- All buckets are read before anything is written. So a key of the wrong type changes nothing.
local reply, isRefused, isTaken = { digits(now) }, false, request.added ~= nil
for index, bucket in ipairs(buckets) do
  bucket.key = KEYS[1 + index]
  local stored = redis.call('GET', bucket.key)
  if stored then
    local level, at = string.match(stored, '^(-?%d+) (-?%d+)$')
    if not level then return redis.error_reply('ERR a key of a bucket has another value') end
    bucket.stored = { level = tonumber(level), at = tonumber(at) }
  end
  bucket.level = bucket.stored and levelAt(bucket.stored, bucket, now) or fullLevel(bucket)
  isTaken = isTaken or bucket.units ~= 0
  isRefused = isRefused or request.isChecked and waitMs(bucket.level, bucket, bucket.units) > 0
  reply[#reply + 1] = digits(bucket.level)
end

for index, calls in ipairs(running) do
  calls.key = KEYS[1 + #buckets + index]
  redis.call('ZREMRANGEBYSCORE', calls.key, '-inf', digits(now))
  -- A later expiry is of a clock that has been set back.
  local latest = digits(now + ${leaseMs})
  for _, lease in ipairs(redis.call('ZRANGEBYSCORE', calls.key, '(' .. latest, '+inf')) do
    redis.call('ZADD', calls.key, latest, lease)
  end
  for _, lease in ipairs(calls.renewed) do redis.call('ZADD', calls.key, latest, lease) end
  if #calls.renewed > 0 then redis.call('PEXPIRE', calls.key, digits(${leaseMs} + extraMs)) end
  if request.removed then redis.call('ZREM', calls.key, request.removed) end
  local count = redis.call('ZCARD', calls.key)
  local last = redis.call('ZRANGE', calls.key, -1, -1, 'WITHSCORES')[2] or 0
  isRefused = isRefused or request.isChecked and count >= calls.limit
  reply[#reply + 1] = digits(count)
  reply[#reply + 1] = digits(tonumber(last))
end

local isSaved = isTaken and not isRefused
for _, bucket in ipairs(buckets) do
  local level = isRefused and bucket.level or levelAfter(bucket.level, bucket, bucket.units)
  local fullMs = msUntil(fullLevel(bucket), level, bucket)
  -- If the clock has been set back, the bucket would not refill until the old time.
  local isAhead = bucket.stored and bucket.stored.at > now
  if fullMs == 0 then
    if bucket.stored then redis.call('DEL', bucket.key) end
  elseif isAhead or not isRefused and bucket.units ~= 0 then
    redis.call('SET', bucket.key, digits(level) .. ' ' .. digits(now), 'PX', digits(fullMs + extraMs))
  end
end
if request.added and not isRefused then
  for _, calls in ipairs(running) do
    redis.call('ZADD', calls.key, digits(now + ${leaseMs}), request.added)
    redis.call('PEXPIRE', calls.key, digits(${leaseMs} + extraMs))
  end
end

local text = table.concat(reply, ' ')
if isSaved then redis.call('SET', replyKey, text, 'PX', ${rememberMs}) end
return text
`

export const script = { source, sha1: createHash('sha1').update(source).digest('hex') }
