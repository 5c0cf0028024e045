-- What an account has done within a span of time is counted in a field of its record: the number of the newest part of
-- the span (8 bytes), then how often in that part, in the one before, ... (2 bytes each): one part more than the span
-- has, so that no span of that length, wherever it begins, holds more than was allowed.

-- What other parts use; the rest has a block of its own (Lua's 200 names).
local limit_fields, limits_counted, own_limit
do

local PARTS = 12
-- A field: the part, how often in that, in the one before, ...
local FORM = '>I8I2I2I2I2I2I2I2I2I2I2I2I2I2'
-- Of a limit: field (2 letters), then how often this counts, span in ms, how often an account may, how often a new one.
local LIMIT, LIMIT_LEN = '>I2I8I2I2', 16

-- What a field says once something counts in it; none: then it would be more than may be, until so many parts have
-- begun (0: it is more by itself).
local function window_counted(stored, now, span, most, cost)
  local part = math.floor(now / (span / PARTS))
  if #stored ~= 10 + 2 * PARTS then
    if cost > most then return nil, 0 end
    return struct.pack('>I8I2', part, cost) .. string.rep('\0', 2 * PARTS)
  end
  -- All numbers of a field at once: a call for each costs more than the rest. The first is the part.
  local at, a, b, c, d, e, f, g, h, i, j, k, l, m = struct.unpack(FORM, stored)
  -- Most often the newest part goes on, and the limit is far: no table is made for that, which cost as much again.
  if at == part and cost + a + b + c + d + e + f + g + h + i + j + k + l + m <= most then
    return struct.pack('>I8I2', at, a + cost) .. string.sub(stored, 11)
  end
  local seen = { at, a, b, c, d, e, f, g, h, i, j, k, l, m }
  -- One that is ahead counts as now; far ahead was a clock that stood wrong: from here on anew.
  if seen[1] > part and seen[1] <= part + PARTS then part = seen[1] end
  local later = part - seen[1]
  if later ~= 0 then
    local moved = { part }
    for n = 2, PARTS + 2 do moved[n] = later > 0 and n - later > 1 and seen[n - later] or 0 end
    seen = moved
  end
  local sum = cost
  for n = 2, PARTS + 2 do sum = sum + seen[n] end
  if sum > most then
    local parts = 0
    while cost <= most and sum > most do
      sum = sum - seen[PARTS + 2 - parts]
      parts = parts + 1
    end
    return nil, parts
  end
  seen[2] = seen[2] + cost
  return struct.pack(FORM, unpack(seen, 1, PARTS + 2))
end

-- Limits of an account's own, in a field of its record: the field that something is counted in (2 letters), then how
-- much the account may, whatever others may. How many it may follow is one of them.
local OWN_LIMIT, OWN_LIMIT_LEN = '>I4', 6

function own_limit(own, field)
  for at = 1, #own, OWN_LIMIT_LEN do
    if string.sub(own, at, at + 1) == field then return (struct.unpack(OWN_LIMIT, own, at + 2)) end
  end
end

-- The fields of a record that tell how often its account may still do what counts against limits: none of no limits.
-- Calls have the same limits one after another: the last ones' fields are remembered, and nobody may change them.
local last_limits, last_fields = '', {}
function limit_fields(limits)
  if limits == last_limits then return last_fields end
  local fields = {}
  if limits ~= '' then fields = { RECORD.REGISTERED_AT, RECORD.OWN_LIMITS } end
  for at = 9, #limits, LIMIT_LEN do fields[#fields + 1] = string.sub(limits, at, at + 1) end
  last_limits, last_fields = limits, fields
  return fields
end

-- What counts against limits: how long an account that was registered is new (ms, 8 bytes), then each limit. What its
-- fields say stands in `seen`, behind so many others. Gives field, value, ... of the record, all of them or none: then
-- which limit is reached, from 0 on, how often the account may, and until how many parts have begun.
function limits_counted(limits, fields, seen, others, now)
  local registered, own = seen[others + 1], seen[others + 2]
  local is_new = registered and tonumber(registered) + struct.unpack('>I8', limits) > now
  local counted = {}
  for n = 3, #fields do
    local cost, span, most, most_new = struct.unpack(LIMIT, limits, 11 + LIMIT_LEN * (n - 3))
    if is_new then most = most_new end
    if own then most = own_limit(own, fields[n]) or most end
    local value, parts = window_counted(seen[others + n] or '', now, span, most, cost)
    if not value then return nil, { n - 3, most, parts } end
    counted[#counted + 1] = fields[n]
    counted[#counted + 1] = value
  end
  return counted
end

-- window_take: counts something that an account does, unless it has done as much as it may.
-- KEYS  record
-- ARGV  limits, the caller's milliseconds
-- Reply {'ok'}; {'often', n, most, parts}: the limit with that number is reached; {'gone'}: no such account
local function window_take(keys, args)
  if not is_there(keys[1]) then return { 'gone' } end
  local fields = limit_fields(args[1])
  local seen = redis.call('HMGET', keys[1], unpack(fields))
  local counted, reached = limits_counted(args[1], fields, seen, 0, tonumber(args[2]))
  if not counted then return { 'often', unpack(reached) } end
  redis.call('HSET', keys[1], unpack(counted))
  return { 'ok' }
end

register('window_take', window_take, {})

end
