-- A bucket's clock is one string: milliseconds and sequence of its last id, its last tick.
local function read_clock(key)
  local text = redis.call('GET', key)
  if not text then return 0, -1, 0 end
  local ms, sequence, tick = string.match(text, '^(%d+) (%-?%d+) (%d+)$')
  return tonumber(ms), tonumber(sequence), tonumber(tick)
end

local function write_clock(key, ms, sequence, tick)
  redis.call('SET', key, string.format('%.0f %.0f %.0f', ms, sequence, tick))
end

local function node_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Ids and ticks follow the caller's time: the median of the primaries' clocks. This server's own may be ahead (H44) or
-- behind (H80), and of two clocks nobody can tell which one is wrong. They rise above the last ones all the same.

-- The next id of a bucket, not taken yet.
local function next_id(key, caller_ms, per_ms)
  local last_ms, last_sequence, tick = read_clock(key)
  local ms, sequence = caller_ms, 0
  -- H43: ids rise.
  if ms <= last_ms then
    ms, sequence = last_ms, last_sequence + 1
    if sequence >= per_ms then ms, sequence = ms + 1, 0 end
  end
  return ms, sequence, tick
end

-- clock_ids: takes ids of a bucket, always above all before.
-- KEYS  clock
-- ARGV  the caller's milliseconds, ids per millisecond, how many
-- Reply {milliseconds, sequence} of the first; the others follow it, over into the next millisecond if need be
local function clock_ids(keys, args)
  local caller_ms, per_ms, count = unpack(args, 1, 3)
  per_ms, count = tonumber(per_ms), tonumber(count)
  local ms, sequence, tick = next_id(keys[1], tonumber(caller_ms), per_ms)
  local end_sequence = sequence + count - 1
  write_clock(keys[1], ms + math.floor(end_sequence / per_ms), end_sequence % per_ms, tick)
  return { ms, sequence }
end

-- Takes ticks of a bucket, all above the one given; gives the first.
local function take_ticks(key, count, caller_ms, above)
  local ms, sequence, tick = read_clock(key)
  -- H13, H84: ticks rise, whatever clocks do; by the caller's time, not by one server's clock.
  tick = math.max(tick + 1, caller_ms, (above or 0) + 1)
  write_clock(key, ms, sequence, tick + count - 1)
  return tick
end

-- clock_ticks: takes ticks of a bucket: milliseconds, strictly increasing.
-- KEYS  clock
-- ARGV  how many, the caller's milliseconds
-- Reply the first; the others follow it
local function clock_ticks(keys, args)
  local count, caller_ms = unpack(args, 1, 2)
  return take_ticks(keys[1], tonumber(count), tonumber(caller_ms))
end

register('clock_ids', clock_ids, {})
register('clock_ticks', clock_ticks, {})
