-- What the tenant has decided stands in its record, and in each bucket in a hash of its own, `z`: the decision's number
-- and all that the record says. A function that takes something away which nothing gives back compares that number with
-- its caller's: what a bucket doesn't know, or knows better, is no reason to remove (H65, H66).

-- Which decision a bucket knows; false: none. `key`: any of the bucket's. Its `z` is not declared: where it can't be
-- seen, in a slot that moves say, this is an error that equals nothing, and nobody fails.
local function decision_known(key)
  return redis.pcall('HGET', string.match(key, '^[^{]*{[^}]*}') .. 'z', 'decision')
end

local function is_decided(key, decision)
  return decision_known(key) == decision
end

-- The same for homes, which are filled anew where they are needed: while nothing was decided, an instance goes by its
-- 'own' settings. 'none', of a tool then: nothing goes.
local function may_drop(key, decision)
  if decision == 'own' then return decision_known(key) == false end
  return is_decided(key, decision)
end

-- tenant_begin: writes the record of a new tenant, all at once: a record without a decision is one of data for which
-- somebody has to decide on purpose. One that is there gets only what it lacks of its layout.
-- KEYS  the tenant's record
-- ARGV  format, buckets; then of what is decided with it field, value, ...
-- Reply 1 if it is new
local function tenant_begin(keys, args)
  local format, buckets = unpack(args, 1, 2)
  local layout = redis.call('HMGET', keys[1], 'format', 'buckets')
  local is_new = not (layout[1] or layout[2])
  -- The layout last: whoever sends it again goes on where it failed.
  for i = 3, is_new and #args or 0, 2 do redis.call('HSETNX', keys[1], args[i], args[i + 1]) end
  redis.call('HSETNX', keys[1], 'format', format)
  redis.call('HSETNX', keys[1], 'buckets', buckets)
  return is_new and 1 or 0
end

-- decision_set: writes a decision, unless one stands there that is not older. Of the same one, what is missing.
-- KEYS  the tenant's record, or a bucket's `z`
-- ARGV  the decision's number, then field, value, ...; the number among them
-- Reply field, value, ... of what stands there now
local function decision_set(keys, args)
  local number = tonumber(args[1])
  local now = tonumber(redis.call('HGET', keys[1], 'decision') or 0)
  if number > now then
    redis.call('HSET', keys[1], unpack(args, 2))
  elseif number == now then
    for i = 2, #args, 2 do redis.call('HSETNX', keys[1], args[i], args[i + 1]) end
  end
  return redis.call('HGETALL', keys[1])
end

-- rights_missing: what the user whose call this is may not do inside functions. Its commands are told at start; else
-- the first call that comes to one would fail there.
-- KEYS  none
-- ARGV  a key like those that it works on, then commands
-- Reply those that it may not use, there or at all
local function rights_missing(_, args)
  local key = args[1]
  local missing = {}
  for i = 2, #args do
    -- Some take what follows for a key, too.
    if not redis.acl_check_cmd(args[i], key, key) then missing[#missing + 1] = args[i] end
  end
  return missing
end

register('rights_missing', rights_missing, { 'no-writes' })
register('tenant_begin', tenant_begin, {})
-- H287: who trims what fills a server decides so first.
register('decision_set', decision_set, { 'allow-oom' })
