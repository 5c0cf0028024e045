-- What an account has done within a span of time is counted in a field of its record: the number of the newest part of
-- the span (8 bytes), then how often in that part, in the one before, ... (2 bytes each): one part more than the span
-- has, so that no span of that length, wherever it begins, holds more than was allowed.

local PARTS = 12

-- window_take: counts something that an account does, unless it has done as much within the span as it may.
-- KEYS  record
-- ARGV  field, the span in ms, how often it may, the caller's milliseconds
-- Reply 1; 0: it may not now; -1: no such account
local function window_take(keys, args)
  local record = keys[1]
  local field, span, most, now = unpack(args, 1, 4)
  if not is_there(record) then return -1 end
  local part = math.floor(tonumber(now) / (tonumber(span) / PARTS))
  local stored = redis.call('HGET', record, field) or ''
  local counts, sum = {}, 0
  if #stored == 10 + 2 * PARTS then
    local newest = struct.unpack('>I8', stored)
    -- One that is ahead counts as now; far ahead was a clock that stood wrong: from here on anew.
    if newest > part and newest <= part + PARTS then part = newest end
    for back = 0, PARTS do
      local ago = part - newest + back
      local count = struct.unpack('>I2', string.sub(stored, 9 + 2 * back))
      if newest <= part and ago <= PARTS then
        counts[ago] = count
        sum = sum + count
      end
    end
  end
  if sum >= tonumber(most) then return 0 end
  counts[0] = (counts[0] or 0) + 1
  local packed = struct.pack('>I8', part)
  for ago = 0, PARTS do packed = packed .. struct.pack('>I2', counts[ago] or 0) end
  redis.call('HSET', record, field, packed)
  return 1
end

register('window_take', window_take, {})
