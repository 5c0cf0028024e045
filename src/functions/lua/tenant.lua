-- What the tenant has decided stands in its record, and in each bucket in a hash of its own, `z`: the decision's number and
-- all that the record says. A function that takes something away which nothing gives back compares that number with its
-- caller's: what a bucket doesn't know, or knows better, is no reason to remove (H65, H66).

-- Whether a bucket knows the decision that a caller goes by. `key`: any of the bucket's. Its `z` is not declared: where it
-- can't be seen, in a slot that moves say, nothing is decided, and nobody fails.
local function is_decided(key, decision)
  return redis.pcall('HGET', string.match(key, '^[^{]*{[^}]*}') .. 'z', 'decision') == decision
end

-- decision_set: writes a decision, unless one stands there that is not older. Of the same one, what is missing.
-- KEYS  the tenant's record, or a bucket's `z`
-- ARGV  the decision's number, then field, value, ...; the number among them
-- Reply field, value, ... of what stands there now
local function decision_set(keys, args)
  local number, now = tonumber(args[1]), tonumber(redis.call('HGET', keys[1], 'decision') or 0)
  if number > now then
    redis.call('HSET', keys[1], unpack(args, 2))
  elseif number == now then
    for i = 2, #args, 2 do redis.call('HSETNX', keys[1], args[i], args[i + 1]) end
  end
  return redis.call('HGETALL', keys[1])
end

register('decision_set', decision_set, {})
