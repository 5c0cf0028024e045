-- A post is one string (`src/post` says how); its author stands at bytes 8-15, its revision at 4-7, its counters at
-- 64-79, what moderators say changes 80-83. An outbox is a list of post ids, 8 bytes each, ascending; the top bit of a
-- deleted post's id is set. Its first element is 'F' and the id up to which posts were cut off.

local PULL = 'L'
local PUBLIC, UNSAID = 0, 255 -- visibilities; the latter the author's lock decides
local OUTBOX_SLACK = 512 -- an outbox is cut by so many at once

local NO_FLOOR = 'F\0\0\0\0\0\0\0\0'

-- A floor stands between ids while what it stands for is cut off: it is ordered like the last of these.
local function outbox_order(element) return order_of(live_id(string.sub(element, -8))) end

-- Places in outboxes as text, which a server would write for each call anew, with all digits that a double may have.
local PLACES, PLACES_MAX = {}, 2048

local function place_text(place)
  local text = PLACES[place]
  if text then return text end
  text = string.format('%d', place)
  if place < PLACES_MAX then PLACES[place] = text end
  return text
end

local function outbox_element(key, place) return redis.call('LINDEX', key, place_text(place)) end

-- Index of the first id in an outbox that is not below `id`. It gallops from the end, where most searches lead.
local function outbox_place(key, id, length)
  local wanted = order_of(id)
  local high, step = length, 1
  local low = length - 1
  while low > 0 and outbox_order(outbox_element(key, low)) >= wanted do
    high = low
    low = math.max(low - step, 0)
    step = step * 2
  end
  -- low is below (or the floor), high isn't (or the end).
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if outbox_order(outbox_element(key, middle)) >= wanted then high = middle else low = middle end
  end
  return math.max(high, math.min(length, 1))
end

-- Notes in an outbox that a post is gone; whether it said something else.
local function bury_in_outbox(key, id)
  local length = redis.call('LLEN', key)
  local place = outbox_place(key, id, length)
  if place >= length or redis.call('LINDEX', key, place) ~= id then return false end
  redis.call('LSET', key, place, string.char(string.byte(id) + 128) .. string.sub(id, 2))
  return true
end

-- What an account has reposted without a comment is a local set of its own: originals with their authors, and as score
-- the repost, by its place among all ids of the bucket, counted from a time in the middle of those that a double can
-- tell apart (`ids.rs` counts the same way).
local REPOSTS_FROM_MS = 1262304000000 -- 2010

local function repost_score(ms, sequence, per_ms) return (ms - REPOSTS_FROM_MS) * per_ms + sequence end

local function repost_id(score, per_ms, low)
  return struct.pack('>I6I2', math.floor(score / per_ms) + REPOSTS_FROM_MS, low + score % per_ms)
end

-- What a server says of declared keys, of a post's: before anything is written, so nobody has to doubt it (H158).
local ELSEWHERE = { err = 'TRYAGAIN a post of a slot that moves may lie at its other server' }

-- Whether a post is there; its key can't be declared. Nil: its slot moves, and it may lie on the other side.
local function post_exists(key)
  local there = redis.pcall('EXISTS', key)
  if type(there) == 'number' then return there == 1 end
  if not string.find(there.err, 'non local key', 1, true) then error(there) end
end

-- Takes the next id of a bucket that no post has; none where that can't be known now.
local function take_post_id(clock, head, caller_ms, per_ms, low)
  local ms, sequence, tick = next_id(clock, caller_ms, per_ms)
  -- Posts above a clock that a failover has set back: few, for the time since has gone on as well.
  for _ = 1, 1000 do
    local id = struct.pack('>I6I2', ms, low + sequence)
    -- H48: the post's key is touched before anything is written.
    local is_taken = post_exists(head .. id)
    if is_taken == nil then return nil end
    if not is_taken then
      write_clock(clock, ms, sequence, tick)
      return id, repost_score(ms, sequence, per_ms)
    end
    sequence = sequence + 1
    if sequence >= per_ms then ms, sequence = ms + 1, 0 end
  end
  error('no free post id in this bucket: ' .. head)
end

-- Cuts the front of an outbox off, down to its newest `most` ids. What then comes first is the floor, before the rest
-- goes: an outbox without one would say less than it knows for good.
local function outbox_trim(key, length, most)
  local floor = length - 1 - most
  -- H7: an outbox's floor rises with its cuts.
  redis.call('LSET', key, floor, 'F' .. live_id(string.sub(redis.call('LINDEX', key, floor), -8)))
  redis.call('LTRIM', key, floor, -1)
end

-- Appends ids to an outbox, which begins with a floor from its first post on. Gives its length.
local function outbox_push(key, ids)
  local length = redis.call('RPUSHX', key, unpack(ids))
  if length == 0 then length = redis.call('RPUSH', key, NO_FLOOR, unpack(ids)) end
  return length
end

-- Looks whether an author may pass a post on: gives why not, or the repost that there is.
local function look_at_repost(keys, repost, record, head, per_ms, low)
  -- H54: a repost compares the ties stamp.
  if (record[4] or '') ~= repost.stamp_seen then return { 'stamp' } end
  local ok, answer = check_place(keys[7], repost.piece, repost.depth)
  if not ok then return answer end
  local before = redis.call('ZSCORE', keys[8], repost.original)
  local id = before and repost_id(tonumber(before), per_ms, low)
  -- H173: a repost that has left memory is noted here until it is deleted.
  local is_reposted = id and (is_archived(redis.call('LINDEX', keys[3], 0), id) or post_exists(head .. id))
  if is_reposted == nil then return ELSEWHERE end
  if is_reposted then
    -- A copy of what takes it back, lying somewhere, must not run after this (H54).
    redis.call('HSET', keys[2], RECORD.TIES_STAMP, repost.stamp)
    return { 'again', id }
  end
  if not before then
    if set_total(keys[7], repost.piece) >= repost.reposts_most then return { 'limit' } end
    if redis.call('ZCARD', keys[8]) >= repost.piece_most and repost.depth < DEPTH_MAX then return { 'full' } end
  end
end

local function note_repost(keys, repost, score)
  redis.call('HSET', keys[2], RECORD.TIES_STAMP, repost.stamp)
  local new = redis.call('ZADD', keys[8], string.format('%.0f', score), repost.original)
  if repost.piece >= 0 then redis.call('BITFIELD', keys[7], 'INCRBY', 'u56', 8, new) end
end

-- Puts a post into its author's outbox, which is cut from time to time, or has the archive look.
local function list_post(outbox, id, author, most, decision, hot, hot_ms)
  local length = outbox_push(outbox, { id })
  if hot == 0 and length > most + OUTBOX_SLACK and is_decided(outbox, decision) then
    outbox_trim(outbox, length, most)
  end
  local every = math.min(hot, AGENDA_EVERY)
  if hot > 0 and length > hot + every and length % every == 0 then agenda_note(outbox, author, hot_ms) end
end

-- Arguments of a new post: their names and order are those of `functions/posts.rs`, and a test there compares them with
-- these lines. Behind the texts stand the fit of its author's home, and the tasks.
local PUBLISH_NUMBERS = '>I6I4I4I4I4I6i4BI4I4I4I6I4'
local PUBLISH_FIT, PUBLISH_TASKS, TASK = 12, 16, 3

-- What a post leaves in the journal: its delivery (none if readers pull it), and a task for each that it refers to.
local function entries_of_post(args, entry, owner, id, author)
  local entries = {}
  if entry then entries = { entry, owner .. 'D' .. id .. author } end
  for i = PUBLISH_TASKS, #args, TASK do
    entries[#entries + 1] = args[i]
    entries[#entries + 1] = owner .. args[i + 1] .. id .. author .. args[i + 2]
  end
  return entries
end

-- post_publish: a new post: its id, the journal, its author's outbox and home, and last its string, with its token.
-- KEYS  clock, author's record, outbox, author's home, journal, author's followers; of a plain repost what its author
--       has reposted, and the piece of that (the set while it is small); the bucket's public posts, if it may be one of
--       them; the token, if there is one
-- ARGV  numbers: the caller's milliseconds, ids per millisecond, the bucket's low bits, most entries of the journal,
--       most ids of the outbox, token's TTL in ms (0: no token), of a plain repost piece (-1: small), depth, most
--       members of a piece, of the set, how many posts stay in memory (0: all, there is no archive), how long they stay
--       in ms, most public posts of the bucket (0: it is none of them, whatever its visibility);
--       what posts' keys begin with, post, author, owner, entry of the delivery, limits ('': none), of a post into a
--       group the graph stamp that the caller saw (''), '' or what is reposted and its author, ties stamp that the
--       caller saw ('' for none), new one; fit; then for each task about what it refers to: entry, the task's letter,
--       what follows post and author in it
-- Reply {'ok', id, mode, state of the follower set}; {'again', id}: the token was used, or it has reposted that;
--       {'gone'}: no such author, {'state', state}: it may not post, {'busy'}: the journal is full; {'waits'}: as many
--       posts as may wait for the archive; {'often', n, most, parts}: limit n is reached;
--       of what it has reposted {'stamp'}: something has changed; {'tree', tree}, {'full'}, {'limit'}
local function post_publish(keys, args)
  local caller_ms, per_ms, low, journal_most, most, token_ms, piece, depth, piece_most, reposts_most, hot, hot_ms,
    public_most = struct.unpack(PUBLISH_NUMBERS, args[1])
  local head, post, author, owner, entry, limits, group_stamp, original, stamp_seen, stamp = unpack(args, 2, 11)
  local fit = fit_of(args, PUBLISH_FIT)
  -- One look at the record, also where limits are on.
  local limited = limit_fields(limits)
  local record = redis.call('HMGET', keys[2], RECORD.STATE, RECORD.MODE, RECORD.IS_LOCKED, RECORD.TIES_STAMP,
    RECORD.GRAPH_STAMP, unpack(limited))
  if not record[1] then return { 'gone' } end
  local token = token_ms > 0 and keys[#keys]
  if token then
    local before = redis.call('GET', token)
    -- H42: a token gives the same post.
    if before then return { 'again', before } end
  end
  local repost = original ~= '' and { original = original, stamp_seen = stamp_seen, stamp = stamp, piece = piece,
    depth = depth, piece_most = piece_most, reposts_most = reposts_most }
  if repost then
    local answer = look_at_repost(keys, repost, record, head, per_ms, low)
    if answer then return answer end
  end
  -- H219: who may post into a group is compared by the group's graph stamp.
  if group_stamp ~= '' and record[5] ~= group_stamp then return { 'stamp' } end
  -- Active, or limited: who may see its posts is the readers' affair.
  if not is_active(record[1]) then return { 'state', record[1] } end
  local entries_most = 1 + (#args - PUBLISH_TASKS + 1) / TASK
  if journal_full(keys[5], journal_most, entries_most, author) then return { 'busy' } end
  if hot > 0 and archive_waits(keys[3], most + OUTBOX_SLACK, hot, caller_ms - hot_ms) then return { 'waits' } end
  -- H208: behind the token, and behind what it has reposted already.
  local counted, reached
  if #limited > 0 then
    counted, reached = limits_counted(limits, limited, record, 5, caller_ms)
    if not counted then return { 'often', unpack(reached) } end
  end
  local mode = string.sub(record[2] or 'P', 1, 1)
  local layout = LOCAL
  if redis.call('TYPE', keys[6]).ok == 'string' then
    layout = string.byte(redis.call('GETRANGE', keys[6], 0, 0))
  end
  local id, score = take_post_id(keys[1], head, caller_ms, per_ms, low)
  if not id then return ELSEWHERE end
  if string.byte(post, 2) == UNSAID then
    post = string.sub(post, 1, 1) .. string.char(record[3] == '1' and 2 or 0) .. string.sub(post, 3)
  end
  -- H89: first what has it brought to others. Who finds an entry without its post is done with that.
  local entries = entries_of_post(args, mode ~= PULL and entry, owner, id, author)
  if #entries > 0 and not journal_first(keys[5], entries, 1, #entries) then return { 'stamp' } end
  if counted then redis.call('HSET', keys[2], unpack(counted)) end
  if repost then note_repost(keys, repost, score) end
  list_post(keys[3], id, author, most, fit[DECISION], hot, hot_ms)
  local length = redis.call('RPUSHX', keys[4], id .. author)
  if length > 0 and length % GROUP == 0 then tidy(keys[4], fit) end
  -- H197: before the post. Behind it, who breaks off between and sends it again gets the same one by its token, and
  -- nobody ever lists that.
  if public_most > 0 and string.byte(post, 2) == PUBLIC then
    public_note(keys[token and #keys - 1 or #keys], id .. author, public_most, fit[DECISION])
  end
  -- H133: last, and with its token: until then whoever names the post names nothing, and who sends it again makes the
  -- only one.
  if token then
    redis.call('MSET', head .. id, post, token, id)
    redis.pcall('SET', token, id, 'PX', token_ms)
  else
    redis.call('SET', head .. id, post)
  end
  -- Behind what can fail, or each sending that does counts once more; the post is there, whatever becomes of this.
  redis.pcall('HINCRBY', keys[2], RECORD.POSTS, 1)
  return { 'ok', id, mode, layout }
end

-- post_edit: writes another text; counters, and what moderators say, stay as they are by now.
-- KEYS  post, author's record; the journal, if there are entries
-- ARGV  author, revision that was edited (4 bytes), post, most entries of the journal, the graph stamp that the caller
--       saw, of a post in a group (''), the random bytes by which the caller has hidden it, of an edit that is held
--       back (''), then entry, value, ...
-- Reply {'ok'}, {'gone'}, {'foreign'}, {'revision'}: somebody else has edited it, or who may write in the group has
--       changed, or a moderator has said something since, {'state', state}: its author may not post, {'busy'}
local function post_edit(keys, args)
  local author, revision, edited, journal_most, stamp, hidden = unpack(args, 1, 6)
  local header = post_header(keys[1])
  -- Written by a later release since it was read: read again it says so.
  if not header then return { 'revision' } end
  if header == '' then return { 'gone' } end
  if string.sub(header, 9, 16) ~= author then return { 'foreign' } end
  if string.sub(header, 5, 8) ~= revision then return { 'revision' } end
  -- Whoever is being deleted has its posts taken off the lists that they were on when that was read.
  local state, now = unpack(redis.call('HMGET', keys[2], RECORD.STATE, RECORD.GRAPH_STAMP))
  if not is_active(state or '') then return { 'state', state or '' } end
  -- H219: as of a new post.
  if stamp ~= '' and now ~= stamp then return { 'revision' } end
  -- H266: it was released by its report meanwhile, and this would show at once.
  if hidden ~= '' and string.sub(header, 81, 84) ~= hidden then return { 'revision' } end
  local entries = (#args - 6) / 2
  if entries > 0 and journal_full(keys[3], tonumber(journal_most), entries, author) then return { 'busy' } end
  if entries > 0 and not journal_first(keys[3], args, 7, #args) then return { 'revision' } end
  redis.call('SET', keys[1], string.sub(edited, 1, 2) .. string.sub(header, 3, 3) .. string.sub(edited, 4, 64)
    .. string.sub(header, 65, 84) .. string.sub(edited, 85))
  return { 'ok' }
end

-- post_moderate: changes what moderators say of a post.
-- KEYS  post
-- ARGV  random bytes that the caller saw (4), new ones, what they say (1 byte)
-- Reply {'ok'}, {'gone'}, {'stamp'}: somebody else has changed it
local function post_moderate(keys, args)
  local seen_stamp, stamp, said = unpack(args, 1, 3)
  local seen = redis.call('GETRANGE', keys[1], 80, 83)
  if #seen < 4 then return { 'gone' } end
  if seen ~= seen_stamp then return { 'stamp' } end
  redis.call('SETRANGE', keys[1], 2, said)
  redis.call('SETRANGE', keys[1], 80, stamp)
  return { 'ok' }
end

-- Whether a post is gone that somebody saw; one that is there otherwise, or is another one's, is refused. `seen`: its
-- revision; of one that can't be read what stands there.
local function gone_since(post, author, seen)
  if #seen ~= 4 then
    local found = redis.pcall('GET', post)
    if not found then return true end
    local is_other = type(found) == 'table' and string.find(found.err, 'WRONGTYPE', 1, true)
    local is_same = is_other and seen == 'other' or type(found) == 'string' and 'text:' .. found == seen
    return false, not is_same and { 'revision' } or nil
  end
  local header = post_header(post)
  if header == '' then return true end
  if not header then return false, { 'revision' } end
  if string.sub(header, 9, 16) ~= author then return false, { 'foreign' } end
  return false, string.sub(header, 5, 8) ~= seen and { 'revision' } or nil
end

-- post_delete: takes a post away, for good: its outbox remembers.
-- KEYS  post, outbox, author's record, journal, agenda; of a plain repost what its author has reposted, and the piece
--       of that; of one that may be among them the bucket's public posts
-- ARGV  author, id, revision that the entries were made from (4 bytes; of one that can't be read what stands there,
--       'text:...' or 'other'), '' or what was reposted and its author, piece (-1: small), depth, ties stamp that the
--       caller saw ('' for none), new one, the repost's score, most entries of the journal, of a post below the
--       author's floor the token under which the archive has forgotten it, 8 random bytes and when that is looked at
--       (0: it can't be lost), '1': it may be among the public posts, then entry, value, ...
-- Reply {'ok'}; {'below'}: the archive has it, or another token was given out since; {'gone'}: there is no such
--       post (any more), nor a note of it, {'foreign'}, {'revision'}: it was edited since, {'busy'}; of a repost
--       {'stamp'}: something has changed, {'tree', tree}
local function post_delete(keys, args)
  local author, id, seen, original, piece, depth, stamp_seen, stamp, score, journal_most = unpack(args, 1, 10)
  local post, outbox, record, journal, agenda, reposts, place = unpack(keys)
  local is_gone, refusal = gone_since(post, author, seen)
  if refusal then return refusal end
  local entries = (#args - 14) / 2
  local erased, nonce, looked_at, may_be_public = unpack(args, 11, 14)
  local first = redis.call('LINDEX', outbox, 0)
  local is_below = is_archived(first, id)
  piece, looked_at = tonumber(piece), tonumber(looked_at)
  -- H171: it may have left memory: whoever knows that the archive has forgotten it says so.
  if is_gone and is_below and erased == '' then return { 'gone' } end
  if not is_gone then
    -- First there: what is deleted here alone the archive would show again.
    if is_below and redis.call('HGET', record, RECORD.ARCHIVE_TOKEN) ~= erased then return { 'below' } end
    if entries > 0 and journal_full(journal, tonumber(journal_most), entries, author) then return { 'busy' } end
    -- H54: what takes a repost back compares the ties stamp.
    local ties_stamp = original ~= '' and (redis.call('HGET', record, RECORD.TIES_STAMP) or '')
    if ties_stamp and ties_stamp ~= stamp_seen then return { 'stamp' } end
  end
  local is_noted = false
  if original ~= '' then
    local ok, answer = check_place(reposts, piece, tonumber(depth))
    if not ok then return answer end
    -- Only as long as it is this repost that is noted there.
    is_noted = tonumber(redis.call('ZSCORE', place, original) or nil) == tonumber(score)
  end
  local counts = is_there(record)
  if not is_gone and entries > 0 and not journal_first(journal, args, 15, #args) then return { 'revision' } end
  if is_below and not is_gone then
    local number = token_number(erased)
    -- H186: an archive that loses what it has forgotten is told once more, or nothing of this account is read from it
    -- any more.
    if looked_at > 0 then
      unsettled_note(record, agenda, author, token_number(string.sub(first, 2)), number, id, looked_at)
    end
    -- H164: who has read its row before, and writes after this, finds another token; an archive that has forgotten the
    -- deletion is seen to be behind.
    redis.call('HSET', record, RECORD.ARCHIVE_TOKEN, struct.pack('>I8', number + 1) .. nonce)
    redis.call('LSET', outbox, 0, archived_first(number, archived_upto(first)))
  end
  -- H99: before what it is of changes, or what is remembered under the old one stays.
  local was_reposted = original ~= '' and (is_noted or not is_gone)
  if was_reposted and counts then redis.call('HSET', record, RECORD.TIES_STAMP, stamp) end
  -- H156: the post before its note: whoever takes a repost back finds it by that.
  if not is_gone then redis.call('DEL', post) end
  -- H199: behind the post. Before it, one that breaks off between leaves a post that is there and not among the public
  -- ones.
  if may_be_public == '1' then public_take_off(keys[#keys], id .. author) end
  -- H99: and from here on also what an earlier sending has not come to.
  if is_noted then
    redis.call('ZREM', place, original)
    if piece >= 0 then redis.call('BITFIELD', reposts, 'INCRBY', 'u56', 8, -1) end
  end
  local was_listed = bury_in_outbox(outbox, id)
  -- Of what can't be read nobody knows whose it was, unless a list or the archive has it.
  local was_counted = was_listed or not is_gone and (is_below or #seen == 4)
  if counts and was_counted then redis.call('HINCRBY', record, RECORD.POSTS, -1) end
  return { is_gone and 'gone' or 'ok' }
end

-- outbox_page: ids of an outbox below or above one.
-- KEYS  outbox
-- ARGV  '<' or '>', id, how many
-- Reply {1 if that is all there is on that side, element, ... ascending}; above an id that the archive may have more
--       above of, the first element too
local function outbox_page(keys, args)
  local side, id, most = unpack(args, 1, 3)
  local length = redis.call('LLEN', keys[1])
  most = tonumber(most)
  if length == 0 then return { 1 } end
  local place = outbox_place(keys[1], id, length)
  local reply, found
  if side == '<' then
    local first = math.max(place - most, 0)
    reply = { first == 0 and 1 or 0 }
    if place == 0 then return { 1 } end
    found = redis.call('LRANGE', keys[1], place_text(first), place_text(place - 1))
  else
    if place < length and live_id(redis.call('LINDEX', keys[1], place)) == id then place = place + 1 end
    reply = { place + most >= length and 1 or 0 }
    found = redis.call('LRANGE', keys[1], place, place + most - 1)
    -- H176: where the archive ends by now: what was asked for may begin there.
    local upto = place <= 1 and archived_upto(redis.call('LINDEX', keys[1], 0))
    if upto and order_of(id) < order_of(upto) then reply[2] = redis.call('LINDEX', keys[1], 0) end
  end
  for i = 1, #found do reply[#reply + 1] = found[i] end
  return reply
end

-- outbox_cut: cuts an outbox down to as many ids as was decided.
-- KEYS  outbox
-- ARGV  most ids, the decision
-- Reply how many went; none if the bucket knows another decision
local function outbox_cut(keys, args)
  local most, decision = unpack(args, 1, 2)
  local length = redis.call('LLEN', keys[1])
  most = tonumber(most)
  if length <= most + 1 or not is_decided(keys[1], decision) then return 0 end
  if archived_upto(redis.call('LINDEX', keys[1], 0)) then return 0 end
  outbox_trim(keys[1], length, most)
  return length - most - 1
end

-- outbox_import: appends ids to an outbox, all above what it holds.
-- KEYS  record, outbox
-- ARGV  id, ... ascending
-- Reply 1; 0: there is no such account, or it is deleted; -1: an id is not above those that are there
local function outbox_import(keys, args)
  if not is_there(keys[1]) then return 0 end
  local record, outbox = keys[1], keys[2]
  local last = redis.call('LINDEX', outbox, -1)
  local first = args[1]
  if last and #last == 8 and outbox_order(last) >= order_of(first) then
    if live_id(last) ~= args[#args] then return -1 end
    -- Our own first sending, whose reply was lost; or which failed before the number. As long as nothing was cut off it
    -- is counted.
    if redis.call('LINDEX', outbox, 0) == NO_FLOOR then
      local ids, posts = redis.call('LRANGE', outbox, 1, -1), 0
      for i = 1, #ids do posts = posts + (string.byte(ids[i]) < 128 and 1 or 0) end
      redis.call('HSET', record, RECORD.POSTS, posts)
    end
    return 1
  end
  outbox_push(outbox, args)
  redis.call('HINCRBY', record, RECORD.POSTS, #args)
  return 1
end

register('outbox_import', outbox_import, {})
register('outbox_cut', outbox_cut, { 'allow-oom' })
register('post_publish', post_publish, {})
register('post_edit', post_edit, {})
-- H287: a post grows by nothing.
register('post_moderate', post_moderate, { 'allow-oom' })
register('post_delete', post_delete, { 'allow-oom' })
register('outbox_page', outbox_page, { 'no-writes' })
