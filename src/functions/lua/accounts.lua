-- An account's record is a hash (its fields: docs/keys.md, names for them: fields.rs). What it follows, mutes, blocks
-- are local sets; its pull marks a hash, author -> 8 random bytes.

-- A mark that begins so is new: its author's side has not been asked yet whether it is locked (graph/new_mark.rs).
local NEW_MARK = 'new\0'

-- account_create: a new account.
-- KEYS  record
-- ARGV  field, value, ...
-- Reply 1, or 0: there is one already
local function account_create(keys, args)
  if redis.call('EXISTS', keys[1]) == 1 then return 0 end
  redis.call('HSET', keys[1], unpack(args))
  return 1
end

-- account_read: notes on which day an account has read, and that its home is alive.
-- KEYS  record, bucket's days
-- ARGV  account, day
-- Reply 1, or 0: there is no such account, or it is deleted
local function account_read(keys, args)
  local account, day = unpack(args, 1, 2)
  if not is_there(keys[1]) then return 0 end
  redis.call('HSET', keys[1], RECORD.LAST_READ_DAY, day)
  redis.call('ZADD', keys[2], day, account)
  return 1
end

-- The floor of a home that is whole.
local function floor_of(home)
  local first = redis.call('LINDEX', home, 0)
  if first and string.sub(first, 9) == WHOLE then return string.sub(first, 1, 8) end
  return ''
end

-- mark_renew: another mark in the place of one that is there, or must be there, for an account that follows. Of a new
-- mark that nobody has named the next one is new too: whoever renews it knows nothing of its author's lock.
-- KEYS  marks; with a stamp: record
-- ARGV  author, mark, what it must be now ('' anything), new marks stamp ('' to keep it)
-- Reply 1, or 0: it is another one, or an earlier sending has failed half-way
local function mark_renew(keys, args)
  local author, mark, must_be, stamp = unpack(args)
  local marks, record = keys[1], keys[2]
  local now = redis.call('HGET', marks, author) or ''
  if must_be ~= '' and now ~= must_be then return 0 end
  -- H85: who marks followers anew leaves new ones new.
  if must_be == '' and string.sub(now, 1, 4) == NEW_MARK then mark = NEW_MARK .. string.sub(mark, 5) end
  if stamp ~= '' then
    -- H157: the stamp first: who finds the mark as it was does both again. Not with a stamp that an earlier sending has
    -- left: under that one somebody may remember the mark as it was.
    if redis.call('HGET', record, RECORD.MARKS_STAMP) == stamp then return 0 end
    redis.call('HSET', record, RECORD.MARKS_STAMP, stamp)
  end
  redis.call('HSET', marks, author, mark)
  return 1
end

-- pair_look: whether an account follows another; if not, with a tick that is above all its follows of the past.
-- KEYS  marks, home, clock, following, its piece (following while it is small)
-- ARGV  piece (-1: small), depth, the other account, the caller's milliseconds, what else the tick is to be above
-- Reply {'following', since, mark or '', the home's floor or ''}, {'not', tick} or {'tree', tree}
local function pair_look(keys, args)
  local piece, depth, author, caller_ms, above = unpack(args, 1, 5)
  local ok, answer = check_place(keys[4], tonumber(piece), tonumber(depth))
  if not ok then return answer end
  local since = redis.call('ZSCORE', keys[5], author)
  -- H13: the tick is of the follower's bucket.
  if not since then return { 'not', take_ticks(keys[3], 1, tonumber(caller_ms), tonumber(above)) } end
  return { 'following', since, redis.call('HGET', keys[1], author) or '', floor_of(keys[2]) }
end

-- How an author's posts are delivered, by its state and mode, and its newest ones down to a floor.
local function seen_of(state, mode, outbox, floor, most)
  local least = floor == '' and 0 or order_of(floor)
  -- As a rule few are above the floor.
  local few = math.min(most, GROUP)
  local newest = redis.call('LRANGE', outbox, 0 - few - 1, -1)
  if #newest > few and few < most and #newest[1] == 8 and order_of(live_id(newest[1])) > least then
    newest = redis.call('LRANGE', outbox, 0 - most - 1, -1)
    few = most
  end
  local way = has_gone(state) and 'X' or string.sub(mode or 'P', 1, 1)
  local reply = { way, floor == '' and '\0\0\0\0\0\0\0\0' or floor }
  for i = #newest, 1, -1 do
    if #newest[i] ~= 8 then
      -- H167: what lies below is in the archive, and isn't told.
      local upto = archived_upto(newest[i])
      if upto and order_of(upto) > least then reply[2] = upto end
      break
    end
    local id = live_id(newest[i])
    if order_of(id) <= least then break end
    if i == #newest - few then
      reply[2] = id
      break
    end
    if id == newest[i] then reply[#reply + 1] = id end
  end
  return reply
end

-- author_look: how an author's posts are delivered, and its newest ones down to a floor.
-- KEYS  record, outbox
-- ARGV  floor ('' for none), most ids
-- Reply {mode ('X': the author is gone), down to where the ids are all (exclusive), id, ...}
local function author_look(keys, args)
  local floor, most = unpack(args, 1, 2)
  local record = redis.call('HMGET', keys[1], RECORD.STATE, RECORD.MODE)
  return seen_of(record[1], record[2], keys[2], floor, tonumber(most))
end

-- join: the author's side of a follow, all at once, as long as all of it is simple: the edge is written, and then is
-- seen what `author_look` tells.
-- KEYS  record, outbox, followers, their piece (followers while it is small), blocks, who waits, who was approved,
--       the bucket's notes, the author's inbox
-- ARGV  floor ('' for none), most ids, piece (-1: small), depth, most of a piece, fewer followers than this, since,
--       account, author, the caller's milliseconds, what the author is told if the edge is new (17 bytes, '' nothing)
-- Reply as author_look; {'tree', tree}: the caller's copy is old; {'full'}: the piece must be split; or {'apart'}: one
--       thing after another, then
local function join(keys, args)
  local floor, most, piece, depth, piece_most, fewer_than, since, account, author, caller_ms, told = unpack(args, 1, 11)
  local apart = { 'apart' }
  piece, depth = tonumber(piece), tonumber(depth)
  local record = redis.call('HMGET', keys[1], RECORD.STATE, RECORD.MODE, RECORD.UNCOUNTED_SINCE, RECORD.IS_LOCKED)
  local state = record[1]
  if not is_known(state) then return apart end
  -- It was locked after the follow was decided (H85).
  if record[4] == '1' then return apart end
  -- A set of many pieces is a string: an error then, which isn't nothing (H24).
  if redis.pcall('ZSCORE', keys[5], account) then return apart end
  if redis.call('HGET', keys[6], account) or redis.call('HGET', keys[7], account) then return apart end
  local ok, total = check_place(keys[3], piece, depth)
  if not ok then return total end
  if total + 1 >= tonumber(fewer_than) then return apart end
  local card = piece < 0 and total or redis.call('ZCARD', keys[4])
  if card >= tonumber(piece_most) and depth < DEPTH_MAX then return { 'full' } end
  -- H213: before the edge is there.
  if told ~= '' and not redis.call('ZSCORE', keys[4], account) then
    inbox_tell_once(keys[9], told, tonumber(caller_ms))
  end
  -- H86: what writes an edge notes it.
  note_edge(keys[8], account, author, caller_ms)
  local new = redis.call('ZADD', keys[4], 'GT', since, account)
  if new > 0 and piece >= 0 then redis.call('BITFIELD', keys[3], 'INCRBY', 'u56', 8, new) end
  redis.call('HSET', keys[1], RECORD.FOLLOWERS, total + new)
  if record[3] then redis.call('HDEL', keys[1], RECORD.UNCOUNTED_SINCE) end
  return seen_of(state, record[2], keys[2], floor, tonumber(most))
end

-- Those of the entries, ascending, that a home doesn't hold: who is pushed again may have been for a while, and then
-- the oldest is there. What is there twice takes up room, and shows once.
local function missing_of(home, entries)
  if not redis.call('LPOS', home, entries[1]) then return entries end
  local there, missing = {}, {}
  local all = redis.call('LRANGE', home, 0, -1)
  for i = 1, #all do there[all[i]] = true end
  for i = 1, #entries do
    if not there[entries[i]] then missing[#missing + 1] = entries[i] end
  end
  return missing
end

-- Appends entries to a home of that length, and tidies it wherever it is due.
local function append_all(home, entries, length, fit)
  local first = 1
  while first <= #entries do
    local last = math.min(#entries, first + GROUP - 1 - length % GROUP)
    length = redis.call('RPUSH', home, unpack(entries, first, last))
    if length % GROUP == 0 then
      tidy(home, fit)
      length = redis.call('LLEN', home)
    end
    first = last + 1
  end
end

-- settle: takes a pull mark away, if the home holds all that it stood for; with that, what had it looked at is done.
-- KEYS  record, marks, home, journal; if the author's followers are spread: its followers in this bucket, the piece
-- ARGV  author, mark, new marks stamp, since, piece (-1: small), depth, '1' if the home may be dropped,
--       down to where the ids are all (exclusive), account, entry ('' for none), fit, id, ... (newest first)
-- Reply {'ok', graph stamp, marks stamp until now}; {'changed'}: the mark is another one, or gone; {'edge'}: the edge
--       is missing; {'busy', nonce}: the home is being filled; {'left'}: the ids don't reach; {'tree', tree}
local function settle(keys, args)
  local author, mark, stamp, since, piece, depth, may_drop, reach, reader, entry = unpack(args, 1, 10)
  -- No mark is another one too: an unfollow may have been settled before our edge was written (H26, H27).
  if redis.call('HGET', keys[2], author) ~= mark then return { 'changed' } end
  if #keys > 4 then
    local ok, answer = check_place(keys[5], tonumber(piece), tonumber(depth))
    if not ok then return answer end
    local score = redis.call('ZSCORE', keys[6], reader)
    -- H18: the edge is looked at with the mark, in one step.
    if not score or tonumber(score) < tonumber(since) then return { 'edge' } end
  end
  local home = keys[3]
  local first = redis.call('LINDEX', home, 0)
  local append, drop, length, fit = {}, false, 0, fit_of(args, 11)
  if first then
    local nonce = string.sub(first, 9)
    if nonce ~= WHOLE then return { 'busy', nonce } end
    local floor = order_of(first)
    for i = #args, 15, -1 do
      if order_of(args[i]) > floor then append[#append + 1] = args[i] .. author end
    end
    if #append > 0 then append = missing_of(home, append) end
    length = redis.call('LLEN', home)
    local room = fit[CUT_AT] + GROUP - length
    -- H15: the ids reach the floor.
    if order_of(reach) > floor or #append + math.ceil(#append / (GROUP - 1)) > math.max(room, 2 * GROUP) then
      if may_drop ~= '1' then return { 'left' } end
      append, drop = {}, true
    end
  end
  local stamps = redis.call('HMGET', keys[1], RECORD.GRAPH_STAMP, RECORD.MARKS_STAMP)
  -- H30: a completion renews the marks stamp.
  redis.call('HSET', keys[1], RECORD.MARKS_STAMP, stamp)
  if #append > 0 then append_all(home, append, length, fit) end
  if drop then redis.call('DEL', home) end
  redis.call('HDEL', keys[2], author)
  if entry ~= '' then redis.call('HDEL', keys[4], entry) end
  return { 'ok', stamps[1] or '', stamps[2] or '' }
end

-- waiting_set: lists who waits for an account's answer. It is noted, as an edge is: a copy that comes late is looked at
-- (H127).
-- KEYS  who waits for that account, the bucket's notes; its inbox and record, if it is told
-- ARGV  who waits, its request, the account, the caller's milliseconds, what the account is told if the request is new
--       (17 bytes, '' nothing)
-- Reply 1 if it is new, or 0
local function waiting_set(keys, args)
  local who, request, author, caller_ms, told = unpack(args, 1, 5)
  if told ~= '' and redis.call('HGET', keys[1], who) ~= request and is_there(keys[4]) then
    inbox_tell_once(keys[3], told, tonumber(caller_ms))
  end
  note_edge(keys[2], who, author .. 'w', tonumber(caller_ms))
  return redis.call('HSET', keys[1], who, request)
end

-- field_drop: drops a field of a hash if it still has that value.
-- KEYS  hash
-- ARGV  field, value
-- Reply 1 or 0
local function field_drop(keys, args)
  local field, value = unpack(args, 1, 2)
  if redis.call('HGET', keys[1], field) ~= value then return 0 end
  return redis.call('HDEL', keys[1], field)
end

-- account_bury: takes keys of a deleted account away, and has looked at what that leaves elsewhere.
-- KEYS  record, journal, then keys that go
-- ARGV  '1' if nothing is to be left of the record but that there was an account, most entries, then entry, value, ...
-- Reply 1; 0: it is not deleted; -1: the journal is full; -2: an earlier sending has left these entries
local function account_bury(keys, args)
  local all, journal_most = unpack(args, 1, 2)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if not state or not has_gone(state) then return 0 end
  if #args > 2 then
    if journal_full(keys[2], tonumber(journal_most), (#args - 2) / 2) then return -1 end
    if not journal_first(keys[2], args, 3, #args) then return -2 end
  end
  if #keys > 2 then redis.call('UNLINK', unpack(keys, 3)) end
  if all ~= '1' then return 1 end
  local fields = redis.call('HKEYS', keys[1])
  for i = 1, #fields do
    if fields[i] ~= RECORD.STATE then redis.call('HDEL', keys[1], fields[i]) end
  end
  return 1
end

register('waiting_set', waiting_set, {})
register('field_drop', field_drop, { 'allow-oom' })
register('account_bury', account_bury, { 'allow-oom' })
register('account_create', account_create, {})
register('account_read', account_read, {})
register('mark_renew', mark_renew, {})
register('pair_look', pair_look, {})
register('author_look', author_look, { 'no-writes' })
register('join', join, {})
register('settle', settle, {})
