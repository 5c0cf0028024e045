-- The journal of a bucket is a hash: entry -> owner (8 bytes), kind (1), arguments, checkpoint. It says what to look
-- at again, never what to do.

local function journal_full(key, most, new) return redis.call('HLEN', key) + new > most end

-- journal_add: adds entries.
-- KEYS  journal
-- ARGV  most entries, then entry, value, ...
-- Reply {'ok'} or {'busy'}
local function journal_add(keys, args)
  if journal_full(keys[1], tonumber(args[1]), (#args - 1) / 2) then return { 'busy' } end
  redis.call('HSET', keys[1], unpack(args, 2))
  return { 'ok' }
end

-- journal_claim: takes an entry over from an instance that is gone.
-- KEYS  journal
-- ARGV  entry, its owner until now, its new owner
-- Reply the entry's value as it is now, or nothing: it has been struck, or somebody else was faster
local function journal_claim(keys, args)
  local value = redis.call('HGET', keys[1], args[1])
  if not value or string.sub(value, 1, 8) ~= args[2] then return false end
  value = args[3] .. string.sub(value, 9)
  redis.call('HSET', keys[1], args[1], value)
  return value
end

-- journal_mark: moves an entry's checkpoint.
-- KEYS  journal
-- ARGV  entry, owner, length of what stands before the checkpoint, checkpoint
-- Reply 1, or 0: it is ours no more
local function journal_mark(keys, args)
  local value = redis.call('HGET', keys[1], args[1])
  if not value or string.sub(value, 1, 8) ~= args[2] then return 0 end
  redis.call('HSET', keys[1], args[1], string.sub(value, 1, tonumber(args[3])) .. args[4])
  return 1
end

-- journal_strike: an entry is done.
-- KEYS  journal, and a record if facts are to be noted there
-- ARGV  entry, then the caller's milliseconds, how old rates may be in ms, field, value, ... of the record
-- Reply {1, or 0: it was struck already}, and with facts what a policy wants to know (rates.lua)
local function journal_strike(keys, args)
  local facts
  if #keys > 1 and is_there(keys[2]) then
    redis.call('HSET', keys[2], unpack(args, 4))
    facts = note_rates(keys[2], tonumber(args[2]), tonumber(args[3]), 0)
  end
  local struck = redis.call('HDEL', keys[1], args[1])
  if facts then return { struck, unpack(facts) } end
  return { struck }
end

-- lease_renew: says that an instance lives, and tells who else does.
-- KEYS  the living
-- ARGV  name ('' to ask only), for how many ms, or 0: it has ended
-- Reply names of the living
local function lease_renew(keys, args)
  local now = node_ms()
  if args[1] ~= '' then
    if args[2] == '0' then
      redis.call('HDEL', keys[1], args[1])
    else
      redis.call('HSET', keys[1], args[1], string.format('%.0f', now + tonumber(args[2])))
    end
  end
  local all, living = redis.call('HGETALL', keys[1]), {}
  for i = 1, #all, 2 do
    -- What is no time is over.
    if (tonumber(all[i + 1]) or 0) > now then
      living[#living + 1] = all[i]
    elseif args[1] ~= '' then
      redis.call('HDEL', keys[1], all[i])
    end
  end
  return living
end

register('journal_add', journal_add, {})
register('journal_claim', journal_claim, { 'allow-oom' })
register('journal_mark', journal_mark, { 'allow-oom' })
register('journal_strike', journal_strike, { 'allow-oom' })
register('lease_renew', lease_renew, { 'allow-oom' })
