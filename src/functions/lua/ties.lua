-- What an account likes and bookmarks are local sets of its own: posts with their authors, 16 bytes, by stamps of its
-- bucket. The record's field `i`, 8 random bytes, is renewed with each change of them: so a copy of one that comes late
-- undoes nothing that is newer.

-- tie_set: likes or bookmarks a post, or takes that back, if nothing has changed since the caller looked.
-- KEYS  record, clock, journal, set, its piece (the set while it is small)
-- ARGV  ties stamp that the caller saw ('' for none), new ties stamp, '+' or '-', piece (-1: small), depth, most
--       members of a piece, most of the set, post and author, most entries of the journal, the caller's milliseconds, then entry,
--       value (or none)
-- Reply {'ok'}; {'stamp'}: something has changed; {'gone'}: there is no such account; {'state', state}: it may not;
--       {'busy'}: the journal is full; {'limit'}; {'tree', tree}; {'full'}
local function tie_set(keys, args)
  local record = redis.call('HMGET', keys[1], 's', 'i')
  local state, is_on, key, place = record[1], args[3] == '+', keys[4], keys[5]
  local piece, depth, member = tonumber(args[4]), tonumber(args[5]), args[8]
  if not state or (is_on and state == 'd') then return { 'gone' } end
  if (record[2] or '') ~= args[1] then return { 'stamp' } end
  if is_on and state ~= 'a' and state ~= 'l' then return { 'state', state } end
  local ok, answer = check_place(key, piece, depth)
  if not ok then return answer end
  local changes = (redis.call('ZSCORE', place, member) and true or false) ~= is_on
  if changes and is_on then
    if set_total(key, piece) >= tonumber(args[7]) then return { 'limit' } end
    if redis.call('ZCARD', place) >= tonumber(args[6]) and depth < DEPTH_MAX then return { 'full' } end
  end
  local entries = (#args - 10) / 2
  if changes and entries > 0 and journal_full(keys[3], tonumber(args[9]), entries) then return { 'busy' } end
  -- Also where nothing changes: a copy of the opposite that lies somewhere must not run after this.
  redis.call('HSET', keys[1], 'i', args[2])
  if not changes then return { 'ok', 0 } end
  if entries > 0 then redis.call('HSET', keys[3], unpack(args, 11)) end
  local by
  if is_on then
    by = redis.call('ZADD', place, string.format('%.0f', take_stamps(keys[2], 1, tonumber(args[10]))), member)
  else
    by = 0 - redis.call('ZREM', place, member)
  end
  if piece >= 0 then redis.call('BITFIELD', key, 'INCRBY', 'u56', 8, by) end
  return { 'ok', 1 }
end

-- tie_look: whether an account likes a post; if not, with a stamp that is above all its likes of the past.
-- KEYS  record, clock, set, its piece (the set while it is small)
-- ARGV  piece (-1: small), depth, post and author, the caller's milliseconds
-- Reply {'tied', since}, {'not', stamp} or {'tree', tree}
local function tie_look(keys, args)
  local ok, answer = check_place(keys[3], tonumber(args[1]), tonumber(args[2]))
  if not ok then return answer end
  local since = is_there(keys[1]) and redis.call('ZSCORE', keys[4], args[3])
  if since then return { 'tied', since } end
  return { 'not', take_stamps(keys[2], 1, tonumber(args[4])) }
end

register('tie_set', tie_set, {})
register('tie_look', tie_look, {})
