-- The journal of a bucket is a hash: entry -> owner (8 bytes), kind (1), arguments, checkpoint. It says what to look
-- at again, never what to do.

local ABOUT_POSTS = 'DILRU' -- kinds whose arguments begin with a post, its author behind it; with others it comes first
local DRAWN_MAX = 64

-- Whose change has left an entry, by its value: of an approval that is who had asked.
local function actor_of(value)
  local first = string.find(ABOUT_POSTS, string.sub(value, 9, 9), 1, true) and 18 or 10
  return string.sub(value, first, first + 7)
end

-- Whether there is no room for so many more entries. One half is for whoever comes first. Of the other one nobody gets
-- anything of whom some entry is among a few that are drawn, more of them the fuller it is: what one account leaves for
-- a server that is away doesn't keep its neighbours from writing (H160). `actor`: nil where nothing is added for
-- anybody, or somebody goes.
local function journal_full(key, most, new, actor)
  local length = redis.call('HLEN', key) + new
  if 2 * length <= most or length > most or not actor then return length > most end
  local few = math.min(DRAWN_MAX, most / 8)
  local drawn = redis.call('HRANDFIELD', key, math.ceil((2 * length / most - 1) * few), 'WITHVALUES')
  for i = 2, #drawn, 2 do
    if actor_of(drawn[i]) == actor then return true end
  end
  return false
end

-- Writes a call's entries, arguments `first` to `last`, before what they are for. False: an earlier sending of the same
-- call has, and failed after that. Whoever found these has looked, nothing had happened, and may be about to strike
-- them: the caller has to draw others (H131).
local function journal_first(key, args, first, last)
  return redis.call('HSET', key, unpack(args, first, last)) == (last - first + 1) / 2
end

-- journal_add: adds entries.
-- KEYS  journal
-- ARGV  most entries, then entry, value, ...
-- Reply {'ok'} or {'busy'}
local function journal_add(keys, args)
  local most = tonumber(args[1])
  if journal_full(keys[1], most, (#args - 1) / 2) then return { 'busy' } end
  redis.call('HSET', keys[1], unpack(args, 2))
  return { 'ok' }
end

-- journal_take_over: takes an entry over from an instance that is gone.
-- KEYS  journal
-- ARGV  entry, its owner until now, its new owner
-- Reply the entry's value as it is now, or nothing: it has been struck, or somebody else was faster
local function journal_take_over(keys, args)
  local entry, before, owner = unpack(args, 1, 3)
  local value = redis.call('HGET', keys[1], entry)
  if not value or string.sub(value, 1, 8) ~= before then return false end
  value = owner .. string.sub(value, 9)
  redis.call('HSET', keys[1], entry, value)
  return value
end

-- journal_checkpoint: moves an entry's checkpoint.
-- KEYS  journal
-- ARGV  entry, owner, length of what stands before the checkpoint, checkpoint
-- Reply 1, or 0: it is ours no more
local function journal_checkpoint(keys, args)
  local entry, owner, length, checkpoint = unpack(args, 1, 4)
  local value = redis.call('HGET', keys[1], entry)
  if not value or string.sub(value, 1, 8) ~= owner then return 0 end
  redis.call('HSET', keys[1], entry, string.sub(value, 1, tonumber(length)) .. checkpoint)
  return 1
end

-- journal_strike: an entry is done.
-- KEYS  journal, and a record if facts are to be noted there
-- ARGV  entry, then the caller's milliseconds, how old rates may be in ms, field, value, ... of the record
-- Reply {1, or 0: it was struck already}, and with facts what a policy wants to know (rates.lua)
local function journal_strike(keys, args)
  local entry, caller_ms, every_ms = unpack(args, 1, 3)
  local facts
  if #keys > 1 and is_there(keys[2]) then
    redis.call('HSET', keys[2], unpack(args, 4))
    facts = note_rates(keys[2], tonumber(caller_ms), tonumber(every_ms), 0)
  end
  local struck = redis.call('HDEL', keys[1], entry)
  if facts then return { struck, unpack(facts) } end
  return { struck }
end

-- The lease of an import; and whether what has that name has to wait: an import and instances never stand beside each
-- other.
local IMPORT = '(import)'
local function is_kept_out(all, name)
  for i = 1, #all, 2 do
    local other = all[i]
    if #other == 8 and other ~= name and (name == IMPORT or other == IMPORT) then return true end
  end
  return false
end

-- lease_renew: says that an instance lives, or an import, and tells what all leases say: "until ttl" with a point
-- between, until when (ms of this server's clock, for instances of releases that go by that) and for how long they were
-- taken. Who lives is told by its lease being another one after each renewal.
-- KEYS  the living
-- ARGV  name ('' to ask only), for how many ms, or 0: it has ended; then name, value of leases that are over
-- Reply name, value, ... of all leases
local function lease_renew(keys, args)
  local name, ttl = unpack(args, 1, 2)
  for i = 3, #args, 2 do
    if redis.call('HGET', keys[1], args[i]) == args[i + 1] then redis.call('HDEL', keys[1], args[i]) end
  end
  if name ~= '' and ttl == '0' then
    redis.call('HDEL', keys[1], name)
  -- H82: an import isn't written beside engines, nor they beside it.
  elseif name ~= '' and not is_kept_out(redis.call('HGETALL', keys[1]), name) then
    local till = node_ms() + tonumber(ttl)
    -- H82: each renewal writes other bytes.
    local value = string.format('%.0f.%s', till, ttl)
    -- A clock that was set back may come by the same time again.
    if redis.call('HGET', keys[1], name) == value then value = string.format('%.0f.%s', till + 1, ttl) end
    redis.call('HSET', keys[1], name, value)
  end
  return redis.call('HGETALL', keys[1])
end

register('journal_add', journal_add, {})
register('journal_take_over', journal_take_over, { 'allow-oom' })
register('journal_checkpoint', journal_checkpoint, { 'allow-oom' })
register('journal_strike', journal_strike, { 'allow-oom' })
register('lease_renew', lease_renew, { 'allow-oom' })
