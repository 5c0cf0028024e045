-- Counters: how often something happened within a while, in decimal, always with an end. Each lies in the bucket of the
-- hash of what it counts. A copy of a call counts once more: whoever asks goes by roughly how many there were.

local COUNT_MAX = 1e15

-- counter_add: so many more.
-- KEYS  counter
-- ARGV  how many more, for how many ms one lasts that begins with them
-- Reply how many there are then
local function counter_add(keys, args)
  local more, lasts_ms = tonumber(args[1]), args[2]
  local before = tonumber(redis.call('GET', keys[1]) or nil)
  local now = math.min((before or 0) + more, COUNT_MAX)
  local text = string.format('%.0f', now)
  -- Its end is written with its beginning: one without would count for good.
  if before then
    redis.call('SET', keys[1], text, 'KEEPTTL')
  else
    redis.call('SET', keys[1], text, 'PX', lasts_ms)
  end
  return now
end

register('counter_add', counter_add, {})
