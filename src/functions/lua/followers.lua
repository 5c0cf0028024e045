-- How many follow an account stands in its record: nr. While its followers lie in one place that is their number now.
-- Those of a spread set are summed up now and then; until that has been done: nd, "since changes", since when (ms) how
-- many have come or gone.

-- followers_note: somebody may have come or gone.
-- KEYS  record, followers
-- ARGV  the caller's milliseconds
-- Reply 1: they are to be summed up; 0: their number stands there, or there is no such account
local function followers_note(keys, args)
  local caller_ms = args[1]
  local is_tree = redis.call('TYPE', keys[2]).ok == 'string'
  if not is_tree or string.byte(redis.call('GETRANGE', keys[2], 0, 0)) == LOCAL then
    tell_followers(keys[1], set_total(keys[2], is_tree and 0 or -1))
    return 0
  end
  if not is_there(keys[1]) then return 0 end
  local since, changes = string.match(redis.call('HGET', keys[1], RECORD.UNCOUNTED_SINCE) or '', '^(%d+) (%d+)$')
  redis.call('HSET', keys[1], RECORD.UNCOUNTED_SINCE, string.format('%s %.0f', since or caller_ms, (changes or 0) + 1))
  return 1
end

-- followers_counted: they have been summed up.
-- KEYS  record
-- ARGV  nd as it was before, their sum, the caller's milliseconds
-- Reply 1; 0: somebody else has done that meanwhile
local function followers_counted(keys, args)
  local seen, sum, caller_ms = unpack(args, 1, 3)
  local now = redis.call('HGET', keys[1], RECORD.UNCOUNTED_SINCE)
  if not now or not is_there(keys[1]) then return 0 end
  redis.call('HSET', keys[1], RECORD.FOLLOWERS, sum)
  if now == seen then
    redis.call('HDEL', keys[1], RECORD.UNCOUNTED_SINCE)
  else
    -- Some have come or gone since: in the sum, or not.
    redis.call('HSET', keys[1], RECORD.UNCOUNTED_SINCE, caller_ms .. string.match(now, ' %d+$'))
  end
  return 1
end

register('followers_note', followers_note, {})
register('followers_counted', followers_counted, {})
