-- What fsck alone needs: counting anew, and putting right what no other function ever leaves behind. Each looks again
-- at what its caller saw, so one that comes late does nothing.

-- set_recount: counts the members of a local set that has a tree, piece by piece.
-- KEYS  set, its pieces
-- ARGV  state and bits of the tree as the caller read them, '1' to write the count
-- Reply {1, members as the tree says, members as the pieces have}, or {0, 0, 0}: it is another tree by now
local function set_recount(keys, args)
  local shape, writes = unpack(args, 1, 2)
  local key = keys[1]
  if redis.call('TYPE', key).ok ~= 'string' then return { 0, 0, 0 } end
  local tree = redis.call('GET', key)
  if string.sub(tree, 1, 1) .. string.sub(tree, 17) ~= shape then return { 0, 0, 0 } end
  local members = 0
  for i = 2, #keys do members = members + redis.call('ZCARD', keys[i]) end
  local told = redis.call('BITFIELD_RO', key, 'GET', 'u56', 8)[1]
  if writes == '1' and told ~= members then redis.call('BITFIELD', key, 'SET', 'u56', 8, members) end
  return { 1, told, members }
end

-- piece_drop: drops a piece that its set doesn't know, or of a set that is spread.
-- KEYS  set, piece
-- ARGV  the piece's number
-- Reply 1, or 0: the set needs it
local function piece_drop(keys, args)
  local piece = tonumber(args[1])
  local key = keys[1]
  if redis.call('TYPE', key).ok == 'string' and redis.call('GETRANGE', key, 0, 0) ~= 'S' then
    local at, depth = 0, 0
    while depth < DEPTH_MAX and redis.call('BITFIELD_RO', key, 'GET', 'u1', HEADER_BITS + 2 ^ depth + at)[1] == 1 do
      depth = depth + 1
      at = piece % 2 ^ depth
    end
    if at == piece then return 0 end
  end
  redis.call('UNLINK', keys[2])
  return 1
end

-- orphan_drop: drops keys of an account that isn't there.
-- KEYS  record, key, ...
-- Reply 1, or 0: it is there, or is being registered
local function orphan_drop(keys)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if not has_gone(state) then return 0 end
  redis.call('UNLINK', unpack(keys, 2))
  return 1
end

-- Lists a post, before the element that follows it, or last.
local function outbox_insert(outbox, record, following, id)
  -- H134: in one command. Writing anew what follows would lose it half-way.
  if following then redis.call('LINSERT', outbox, 'BEFORE', following, id) else outbox_push(outbox, { id }) end
  redis.call('HINCRBY', record, RECORD.POSTS, 1)
end

-- outbox_mend: brings a post and its author's outbox in line.
-- KEYS  post, outbox, author's record
-- ARGV  author, id
-- Reply 0: they are, or it can't be read; 1: it is listed now; 2: it is gone, and the outbox knows now; 3: it was
--       deleted, and is gone now
local function outbox_mend(keys, args)
  local author, id = unpack(args, 1, 2)
  local outbox = keys[2]
  local length = redis.call('LLEN', outbox)
  local place = outbox_place(outbox, id, length)
  local found = place < length and redis.call('LINDEX', outbox, place)
  local is_listed = found and #found == 8 and live_id(found) == id
  local header = post_header(keys[1])
  if not header then return 0 end
  if string.sub(header, 9, 16) ~= author then
    if not is_listed or found ~= id then return 0 end
    redis.call('LSET', outbox, place, string.char(string.byte(id) + 128) .. string.sub(id, 2))
    if is_there(keys[3]) then redis.call('HINCRBY', keys[3], RECORD.POSTS, -1) end
    return 2
  end
  if is_listed then
    if found == id then return 0 end
    redis.call('DEL', keys[1])
    return 3
  end
  if not is_there(keys[3]) then return 0 end
  local floor = redis.call('LINDEX', outbox, 0)
  if floor and order_of(id) <= order_of(string.sub(floor, -8)) then return 0 end
  outbox_insert(outbox, keys[3], found, id)
  return 1
end

-- posts_recount: writes how many posts an account has, if nothing was posted or deleted since they were counted.
-- KEYS  record, outbox
-- ARGV  number that the record said, last element of the outbox ('' none), number that was counted
-- Reply 1 or 0
local function posts_recount(keys, args)
  local told, newest, posts = unpack(args, 1, 3)
  if not is_there(keys[1]) then return 0 end
  if (redis.call('HGET', keys[1], RECORD.POSTS) or '0') ~= told then return 0 end
  if (redis.call('LINDEX', keys[2], -1) or '') ~= newest then return 0 end
  redis.call('HSET', keys[1], RECORD.POSTS, posts)
  return 1
end

-- archive_accept: has an outbox go by an archive that is older than memory, because no newer one is there. What memory
-- has of the posts that its floor passed and the archive lacks is listed again.
-- KEYS  record, outbox, agenda; then posts that an agenda names and the new floor won't cover
-- ARGV  account, token, the outbox's first element, up to which id the archive has all ('': these posts are listed, and
--       others before the floor sinks), how many posts are lost, now in ms, ids of these posts joined, ascending
-- Reply {'ok'}; {'token'}: somebody has taken another one, or the account is gone; {'outbox'}: it has changed
local function archive_accept(keys, args)
  local record, outbox, agenda = unpack(keys, 1, 3)
  local account, token, first, upto, lost, now_ms, ids = unpack(args, 1, 7)
  -- H191: who was at this account before, and sleeps, has another token.
  local given = is_there(record) and redis.call('HGET', record, RECORD.ARCHIVE_TOKEN)
  if given ~= token then return { 'token' } end
  if redis.call('LINDEX', outbox, 0) ~= first then return { 'outbox' } end
  local front, is_listed, done = redis.call('LRANGE', outbox, 1, #ids / 8), {}, {}
  for i = 1, #front do is_listed[live_id(front[i])] = true end
  -- H190: before the floor sinks below them: above it, what no outbox lists is gone.
  for i = #ids / 8, 1, -1 do
    local id = string.sub(ids, 8 * i - 7, 8 * i)
    if not is_listed[id] and redis.call('EXISTS', keys[3 + i]) == 1 then
      redis.call('LINSERT', outbox, 'AFTER', first, id)
    end
    done[#done + 1] = id .. account
  end
  redis.call('ZADD', agenda, 'NX', now_ms, account)
  -- H180: what an agenda names leaves, also from above the floor.
  if #done > 0 then redis.call('ZREM', agenda, unpack(done)) end
  if upto ~= '' then
    redis.call('LSET', outbox, 0, archived_first(token_number(token), upto))
    redis.call('HINCRBY', record, RECORD.POSTS, 0 - tonumber(lost))
  end
  return { 'ok' }
end

-- post_recover: brings a post of the archive back into memory that lies above its author's floor, with all that lies
-- beside it, and lists it.
-- KEYS, ARGV  as those of post_thaw; nobody looks at it again but as at any other post
-- Reply {'ok'}; {'there'}: it is there, or was deleted; {'changed'}: look again; {'gone'}: the account is
local function post_recover(keys, args)
  local record, outbox, post = keys[1], keys[2], keys[4]
  local id, token, stored, pieces = args[2], args[3], args[4], args[6]
  if not is_there(record) then return { 'gone' } end
  -- H164: its row was read under that one.
  local given, first = redis.call('HGET', record, RECORD.ARCHIVE_TOKEN) or '', redis.call('LINDEX', outbox, 0)
  if given ~= token or is_archived(first, id) then return { 'changed' } end
  local length = redis.call('LLEN', outbox)
  local place = outbox_place(outbox, id, length)
  local found = place < length and redis.call('LINDEX', outbox, place)
  local is_listed = found and #found == 8 and live_id(found) == id
  local is_in_memory = redis.call('EXISTS', post) == 1
  -- H194: who deleted it above the floor has told the outbox alone.
  if is_listed and (is_in_memory or found ~= id) then return { 'there' } end
  if not is_in_memory then bundle_write(keys, stored, pieces, args) end
  if not is_listed then outbox_insert(outbox, record, found, id) end
  return { 'ok' }
end

register('set_recount', set_recount, { 'allow-oom' })
register('piece_drop', piece_drop, { 'allow-oom' })
register('orphan_drop', orphan_drop, { 'allow-oom' })
register('outbox_mend', outbox_mend, {})
register('posts_recount', posts_recount, { 'allow-oom' })
register('archive_accept', archive_accept, { 'allow-oom' })
register('post_recover', post_recover, {})
