-- A local set (docs/sets.md) is one sorted set while it is small. When that is full, its key becomes a *tree*, a
-- string, and its members move to pieces:
--   byte 0      state: L local, G being spread, C copied (and nobody may begin again), S spread
--   bytes 1-7   number of members
--   bytes 8-15  who is spreading it
--   then one bit for each node of the binary trie, node 2^depth + piece: has it been split?
-- Piece i of depth d holds the members whose hash ends in the d bits of i; a split moves those with the next bit
-- set to piece i + 2^d. So a member only ever moves to a higher piece.

local HEADER_BITS = 128
local DEPTH_MAX = 20
local LOCAL = 76 -- 'L'

-- The same hash as `tree::hash` in Rust. All products stay below 2^53, where doubles are exact.
local function hash(member)
  local h = 7
  for i = 1, #member do
    h = (h * 1000003 + string.byte(member, i)) % 2147483647
  end
  return (h * 2097143 + 11) % 2147483647
end

-- Whether (piece, depth) is a leaf of the tree at `key`: true and how many members the set has; or nil and the answer
-- for a caller whose copy of the tree is old.
local function check_leaf(key, piece, depth)
  local node = 2 ^ depth + piece
  local parent = depth > 0 and 2 ^ (depth - 1) + piece % 2 ^ (depth - 1) or 0
  local bits = redis.pcall('BITFIELD', key, 'GET', 'u8', 0, 'GET', 'u1', HEADER_BITS + node,
    'GET', 'u1', HEADER_BITS + parent, 'GET', 'u56', 8)
  if bits.err and string.sub(bits.err, 1, 9) ~= 'WRONGTYPE' then return nil, bits end
  if bits.err or bits[1] == 0 then return nil, { 'tree', '' } end
  -- H49, H38: changes compare the tree; a set that is being spread takes no changes.
  if bits[1] ~= LOCAL or bits[2] == 1 or (depth > 0 and bits[3] == 0) then
    return nil, { 'tree', redis.call('GET', key) }
  end
  return true, bits[4]
end

-- The same for one that believes that the set at `key` still is one sorted set, or nothing.
local function check_small(key)
  local members = redis.pcall('ZCARD', key)
  if type(members) == 'number' then return true, members end
  if string.sub(members.err, 1, 9) ~= 'WRONGTYPE' then return nil, members end
  return nil, { 'tree', redis.call('GET', key) }
end

local function check_place(key, piece, depth)
  if piece < 0 then return check_small(key) end
  return check_leaf(key, piece, depth)
end

-- Splits a full piece. Its partner is deleted first: a split that broke off may have left copies there.
local function split(key, from, to, piece, depth)
  redis.call('DEL', to)
  local all = redis.call('ZRANGE', from, 0, -1, 'WITHSCORES')
  local scored, moved = {}, {}
  for i = 1, #all, 2 do
    if math.floor(hash(all[i]) / 2 ^ depth) % 2 == 1 then
      scored[#scored + 1] = all[i + 1]
      scored[#scored + 1] = all[i]
      moved[#moved + 1] = all[i]
    end
  end
  for i = 1, #scored, 500 do redis.call('ZADD', to, unpack(scored, i, math.min(i + 499, #scored))) end
  redis.call('BITFIELD', key, 'SET', 'u1', HEADER_BITS + 2 ^ depth + piece, 1)
  for i = 1, #moved, 500 do redis.call('ZREM', from, unpack(moved, i, math.min(i + 499, #moved))) end
end

-- Makes a tree of a set that was one sorted set: the members go to piece 0.
local function plant(key, piece0, state, nonce)
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  -- H96: a copy, and then one SET that takes the set's place. Until then it is the whole set, whichever command fails,
  -- and what lies in the piece is nobody's; so it is deleted first: members of an earlier copy may be gone.
  redis.call('DEL', piece0)
  for i = 1, #all, 500 do
    local scored = {}
    for at = i, math.min(i + 499, #all), 2 do
      scored[#scored + 1] = all[at + 1]
      scored[#scored + 1] = all[at]
    end
    redis.call('ZADD', piece0, unpack(scored))
  end
  redis.call('SET', key, state .. struct.pack('>I7', #all / 2) .. nonce)
end

-- Says in an account's record how many follow it, who all lie in one place.
local function tell_followers(record, total)
  if not is_there(record) then return end
  redis.call('HSET', record, RECORD.FOLLOWERS, total)
  redis.call('HDEL', record, RECORD.UNCOUNTED_SINCE)
end

-- Notes that an edge has been written: once it has rested for a while somebody looks whether its follow is there. It is
-- the same write as the edge, so a copy that comes late, or outlives what it was for, is looked at too.
local function note_edge(notes, account, author, caller_ms)
  local member = account .. author
  if redis.call('ZADD', notes, 'NX', caller_ms, member) == 1 then return end
  -- Another one: whoever looks at it now looks once more.
  redis.call('ZADD', notes, redis.call('ZSCORE', notes, member) + 1, member)
end

-- set_add: adds members that belong to one piece of a local set.
-- KEYS  set; unless it is small: the piece; if a split is allowed: the piece (0 of a small set) and its partner;
--       of a member of which an account is told: its inbox; if a guard is asked for: the guard, last; or if the members
--       are an account's followers: the bucket's notes, and its record, last
-- ARGV  piece (-1: small), depth, most members of a piece, option of ZADD ('' for none), guard's value ('' for
--       none; 0: that there is none), '1' if a split is allowed, '1' if a record is to tell their number, '' or whose
--       followers they are: what is written is noted; the caller's milliseconds; the decision that this follows from
--       ('' none: nothing is written if the bucket knows another); what an account is told of the one member if that is
--       new (17 or 25 bytes, '' nothing); then score, member, ...
-- Reply {'ok', pairs done, members new, members in all}
--       {'full', ...} the same: the piece is full, call again with a split allowed
--       {'split', ..., tree}: it was full and has been split, call again by the new tree
--       {'tree', tree}: the caller's copy is old ('' for a small set);  {'guard'}: it has another value;
--       {'undecided'}: the bucket knows another decision
local function set_add(keys, args)
  local piece, depth, most, option, guard, may_split, counts, followed, caller_ms, decision, told = unpack(args, 1, 11)
  piece, depth, most = tonumber(piece), tonumber(depth), tonumber(most)
  may_split, counts = may_split == '1', counts == '1'
  -- H126: or something was taken off lists of this bucket since the caller looked at what it adds.
  if guard ~= '' and (redis.call('GET', keys[#keys]) or '0') ~= guard then return { 'guard' } end
  if decision ~= '' and not is_decided(keys[1], decision) then return { 'undecided' } end
  local key, place = keys[1], keys[piece < 0 and 1 or 2]
  local ok, answer = check_place(key, piece, depth)
  if not ok then return answer end
  local first, last = 12, #args
  local card = redis.call('ZCARD', place)
  local new, outcome = 0, 'ok'
  local function zadd(from, to)
    -- H86, H87: what writes an edge notes it.
    if followed ~= '' then
      for i = from + 1, to, 2 do note_edge(keys[#keys - (counts and 1 or 0)], args[i], followed, caller_ms) end
    end
    -- H12: the tick of an edge only grows.
    if option == '' then return redis.call('ZADD', place, unpack(args, from, to)) end
    return redis.call('ZADD', place, option, unpack(args, from, to))
  end
  local has_room = card + (last - first + 1) / 2 <= most or depth >= DEPTH_MAX
  if told ~= '' and has_room and not redis.call('ZSCORE', place, args[last]) then
    -- H213: before it is in it.
    inbox_tell(keys[#keys - (guard == '' and 0 or 1)], told, tonumber(caller_ms))
  end
  if has_room then
    new = zadd(first, last)
    first = last + 1
  else
    while first < last do
      if card + new >= most and not redis.call('ZSCORE', place, args[first + 1]) then
        outcome = may_split and 'split' or 'full'
        break
      end
      new = new + zadd(first, first + 1)
      first = first + 2
    end
  end
  local total
  if piece < 0 then
    total = card + new
  else
    total = redis.call('BITFIELD', key, 'INCRBY', 'u56', 8, new)[1]
  end
  if counts then tell_followers(keys[#keys], total) end
  local done = (first - 12) / 2
  if outcome ~= 'split' then return { outcome, done, new, total } end
  if piece < 0 then
    plant(key, keys[2], 'L', string.rep('\0', 8))
    piece, depth = 0, 0
  end
  split(key, keys[2], keys[3], piece, depth)
  return { 'split', done, new, total, redis.call('GET', key) }
end

-- How many members the set at `key` has, small or not.
local function set_total(key, piece)
  if piece < 0 then return redis.call('ZCARD', key) end
  return redis.call('BITFIELD_RO', key, 'GET', 'u56', 8)[1]
end

-- Whether a local set of an account holds a member. `head`: what all keys of the bucket begin with.
local function holds(head, name, member)
  local key = head .. 's' .. name
  local score = redis.pcall('ZSCORE', key, member)
  if type(score) ~= 'table' then return score end
  if string.sub(score.err, 1, 9) ~= 'WRONGTYPE' then error(score) end
  local of, piece, depth = hash(member), 0, 0
  while redis.call('BITFIELD_RO', key, 'GET', 'u1', HEADER_BITS + 2 ^ depth + piece)[1] == 1 do
    depth = depth + 1
    piece = of % 2 ^ depth
  end
  return redis.call('ZSCORE', head .. 'p' .. string.format('%x', piece) .. ':' .. name, member)
end

-- set_split: makes room in a full piece without adding anything.
-- KEYS  set, the piece (0 of a small set), its partner
-- ARGV  piece (-1: small), depth
-- Reply {'tree', tree}: the set as it is now
local function set_split(keys, args)
  local piece, depth = unpack(args, 1, 2)
  piece, depth = tonumber(piece), tonumber(depth)
  local ok, answer = check_place(keys[1], piece, depth)
  if not ok then return answer end
  if piece < 0 then
    plant(keys[1], keys[2], 'L', '\0\0\0\0\0\0\0\0')
    piece, depth = 0, 0
  end
  if depth < DEPTH_MAX then split(keys[1], keys[2], keys[3], piece, depth) end
  return { 'tree', redis.call('GET', keys[1]) }
end

-- set_remove: removes members of one piece of a local set.
-- KEYS  set; unless it is small: the piece; if the members are an account's followers: its record, last; or if who adds
--       is to be told: when something was taken off lists of this bucket last
-- ARGV  piece (-1: small), depth, '1' if a record is to tell their number, the decision that this follows from (''
--       none: nothing goes if the bucket knows another), the caller's milliseconds if who adds is to be told (else ''),
--       then for each member: remove only if its score is below this
--       ('' always), member
-- Reply {'ok', members removed, members in all, '' or the highest score of those that stay since theirs is not below}
--       or {'tree', tree}
local function set_remove(keys, args)
  local piece, depth, counts, decision, told_ms = unpack(args, 1, 5)
  piece, depth = tonumber(piece), tonumber(depth)
  local key, place = keys[1], keys[piece < 0 and 1 or 2]
  local ok, answer = check_place(key, piece, depth)
  if not ok then return answer end
  -- H126: first, and also if they are not in it: an addition may still be on its way.
  if told_ms ~= '' then removal_told(keys[#keys], told_ms) end
  -- Before anything goes: what is gone cannot be asked for in a slot that moves.
  local card, removed, kept = redis.call('ZCARD', place), 0, ''
  local last = (decision == '' or is_decided(key, decision)) and #args or 5
  for i = 6, last, 2 do
    if removed == card then break end
    local below = args[i]
    local score = below == '' or redis.call('ZSCORE', place, args[i + 1])
    -- H12: an edge goes only below a tick.
    if below == '' or (score and tonumber(score) < tonumber(below)) then
      removed = removed + redis.call('ZREM', place, args[i + 1])
    elseif score and (kept == '' or tonumber(score) > tonumber(kept)) then
      kept = score
    end
  end
  local total = card - removed
  if piece >= 0 then total = redis.call('BITFIELD', key, 'INCRBY', 'u56', 8, 0 - removed)[1] end
  if counts == '1' then tell_followers(keys[#keys], total) end
  return { 'ok', removed, total, kept }
end

-- notes_drop: edges that were noted have been looked at.
-- KEYS  the bucket's notes
-- ARGV  when it was noted, follower and author, ...
-- Reply how many notes have gone: one that has been written again meanwhile stays
local function notes_drop(keys, args)
  -- Before anything goes: what is gone cannot be asked for in a slot that moves.
  local card, dropped = redis.call('ZCARD', keys[1]), 0
  for i = 1, #args, 2 do
    if dropped == card then break end
    local noted = redis.call('ZSCORE', keys[1], args[i + 1])
    -- H87: a note that was written again stays.
    if noted and tonumber(noted) == tonumber(args[i]) then
      dropped = dropped + redis.call('ZREM', keys[1], args[i + 1])
    end
  end
  return dropped
end

-- set_count: how many members a local set has.
-- KEYS  set
-- Reply {members, state}
local function set_count(keys)
  local kind = redis.call('TYPE', keys[1]).ok
  if kind == 'zset' then return { redis.call('ZCARD', keys[1]), LOCAL } end
  if kind ~= 'string' then return { 0, LOCAL } end
  local bits = redis.call('BITFIELD_RO', keys[1], 'GET', 'u56', 8, 'GET', 'u8', 0)
  return { bits[1], bits[2] }
end

-- spread_begin: from now on the local set is frozen, and `nonce` copies it.
-- KEYS  set, its piece 0
-- ARGV  '' if it must be local, else who is spreading it until now; nonce
-- Reply {'ok'} or {'tree', tree}
local function spread_begin(keys, args)
  local before, nonce = unpack(args, 1, 2)
  local key = keys[1]
  if redis.call('TYPE', key).ok ~= 'string' then
    if before ~= '' then return { 'tree', '' } end
    plant(key, keys[2], 'G', nonce)
    return { 'ok' }
  end
  local tree = redis.call('GET', key)
  local state = string.sub(tree, 1, 1)
  local owner = string.sub(tree, 9, 16)
  -- Our own nonce stands there when the reply to a first sending was lost.
  if not ((state == 'L' and before == '') or (state == 'G' and (owner == before or owner == nonce))) then
    return { 'tree', tree }
  end
  redis.call('SETRANGE', key, 8, nonce)
  redis.call('SETRANGE', key, 0, 'G')
  return { 'ok' }
end

-- Goes from state `from`, or stays in state `to`, if it is still `nonce` who spreads the set.
local function advance(key, from, to, nonce)
  local tree = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) or ''
  local state = string.sub(tree, 1, 1)
  if (state ~= from and state ~= to) or string.sub(tree, 9, 16) ~= nonce then return { 'tree', tree } end
  redis.call('SETRANGE', key, 0, to)
  return { 'ok' }
end

-- spread_beat: a sign of life of who copies the set: a bit that means nothing else.
-- KEYS  set
-- ARGV  nonce, bit
-- Reply 1, or 0 if somebody else copies, or nobody
local function spread_beat(keys, args)
  local nonce, bit = unpack(args, 1, 2)
  if redis.call('TYPE', keys[1]).ok ~= 'string' then return 0 end
  local header = redis.call('GETRANGE', keys[1], 0, 15)
  if string.sub(header, 1, 1) ~= 'G' or string.sub(header, 9, 16) ~= nonce then return 0 end
  redis.call('SETBIT', keys[1], HEADER_BITS, bit)
  return 1
end

-- spread_copied: the parts hold everything, on replicas too; nobody copies again.
-- KEYS  set
-- ARGV  nonce
-- Reply {'ok'} or {'tree', tree}
local function spread_copied(keys, args) return advance(keys[1], 'G', 'C', unpack(args)) end

-- spread_end: from now on the parts are the set.
-- KEYS  set
-- ARGV  nonce
-- Reply {'ok'} or {'tree', tree}
local function spread_end(keys, args) return advance(keys[1], 'C', 'S', unpack(args)) end

-- spread_drop: what was local of a set that was spread may go.
-- KEYS  set, pieces
-- Reply 1, or 0 if the set is not spread
local function spread_drop(keys)
  if redis.call('TYPE', keys[1]).ok ~= 'string' or redis.call('GETRANGE', keys[1], 0, 0) ~= 'S' then return 0 end
  redis.call('UNLINK', unpack(keys, 2))
  return 1
end

-- spread_forget: the pieces of a set that was spread are gone; its tree may forget them.
-- KEYS  set
-- Reply 1 or 0
local function spread_forget(keys)
  if redis.call('TYPE', keys[1]).ok ~= 'string' then return 0 end
  local header = redis.call('GETRANGE', keys[1], 0, 15)
  if string.sub(header, 1, 1) ~= 'S' then return 0 end
  redis.call('SET', keys[1], header)
  return 1
end

-- guard_close: whoever holds this guard copies no more.
-- KEYS  guard
-- ARGV  its value
-- Reply 1 or 0
local function guard_close(keys, args)
  local value = args[1]
  if redis.call('GET', keys[1]) ~= value then return 0 end
  return redis.call('DEL', keys[1])
end

register('set_add', set_add, {})
register('set_split', set_split, {})
register('set_remove', set_remove, { 'allow-oom' })
register('notes_drop', notes_drop, { 'allow-oom' })
register('set_count', set_count, { 'no-writes' })
register('spread_begin', spread_begin, {})
-- They overwrite what is there, so a server that is out of memory takes them.
register('spread_beat', spread_beat, { 'allow-oom' })
register('spread_copied', spread_copied, { 'allow-oom' })
register('spread_end', spread_end, { 'allow-oom' })
register('spread_drop', spread_drop, { 'allow-oom' })
register('spread_forget', spread_forget, { 'allow-oom' })
register('guard_close', guard_close, { 'allow-oom' })
