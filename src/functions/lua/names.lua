-- Lists of names by how they begin: of each beginning a sorted set of who is called so, accounts (8 bytes) or hashtags.
-- Scores say who is kept longest: the higher ones.

-- names_add: puts a name on a list, or gives it another score. Of too many those with the lowest scores go.
-- KEYS  list
-- ARGV  how many may be there, score, member
-- Reply 1
local function names_add(keys, args)
  local most, score, member = unpack(args, 1, 3)
  redis.call('ZADD', keys[1], score, member)
  local over = redis.call('ZCARD', keys[1]) - most
  if over > 0 then redis.call('ZREM', keys[1], unpack(redis.call('ZRANGE', keys[1], 0, over - 1))) end
  return 1
end

-- names_drop: takes a name off a list.
-- KEYS  list
-- ARGV  its score as the caller saw it, member
-- Reply 1; 0: it isn't there, or was put there anew
local function names_drop(keys, args)
  local seen, member = unpack(args, 1, 2)
  local score = redis.call('ZSCORE', keys[1], member)
  if not score or tonumber(score) ~= tonumber(seen) then return 0 end
  return redis.call('ZREM', keys[1], member)
end

register('names_add', names_add, {})
register('names_drop', names_drop, { 'allow-oom' })
