-- Posts that have left memory. Where a post of an account lies is decided in the account's bucket alone, so that what a
-- failover leaves is one moment's. The outbox's first element says 'A', the number of a token that the archive must
-- know at least, and up to which id it has all; the record's field `ar` is the token that was given out last, a number
-- and 8 random bytes. Whoever changes what the archive has of an account takes the next token first.

-- What the archive may still lose is in the field `ae`: the number that it must know before all of that, then of each
-- post that was deleted the number under which it has forgotten it, its id, and when that is looked at (8 bytes each).

local ARCHIVED = 'A'
-- Before an account in the agenda: of what the archive has forgotten something may come back.
local AGENDA_UNSETTLED = 'E'
local DELETION, DELETIONS_MAX = 24, 1000
local AGENDA_EVERY = 64 -- posts beyond those that stay, until somebody looks; fewer where few stay

local function token_number(token)
  if not token then return 0 end
  return (struct.unpack('>I8', token))
end

-- Up to which id an outbox's posts are in the archive, by its first element; nothing: none are.
local function archived_upto(first)
  if first and string.sub(first, 1, 1) == ARCHIVED and #first == 17 then return string.sub(first, 10) end
end

local function is_archived(first, id)
  local upto = archived_upto(first)
  return upto and order_of(id) <= order_of(upto) or false
end

local function archived_first(number, upto) return ARCHIVED .. struct.pack('>I8', number) .. upto end

local function ms_of(element) return (struct.unpack('>I6', live_id(element))) end

-- Notes when an account has posts that may leave: when its oldest one will have stayed long enough. The agenda isn't
-- declared: where it can't be seen, in a slot that moves, a later post notes it.
local function agenda_note(outbox, account, hot_ms)
  local oldest = redis.call('LINDEX', outbox, 1)
  if not oldest or #oldest ~= 8 then return end
  local agenda = string.match(outbox, '^[^{]*{[^}]*}') .. 'F'
  redis.pcall('ZADD', agenda, 'NX', ms_of(oldest) + hot_ms, account)
end

-- Whether more posts than `most` are to leave, and don't: `hot` ones stay, and those that are younger than `before_ms`.
local function archive_waits(outbox, most, hot, before_ms)
  local last = redis.call('LLEN', outbox) - 1 - hot > most and redis.call('LINDEX', outbox, most)
  return last and #last == 8 and ms_of(last) <= before_ms or false
end

-- Sets when somebody looks at an account again: when the next of its posts may leave, or never. `done`: entries that
-- go. All at once, and last: what may have emptied a key doesn't ask for it again.
local function agenda_next(agenda, outbox, account, hot, hot_ms, done)
  local oldest = redis.call('LINDEX', outbox, 1)
  if oldest and #oldest == 8 and redis.call('LLEN', outbox) - 1 > hot then
    redis.call('ZADD', agenda, ms_of(oldest) + hot_ms, account)
  else
    done[#done + 1] = account
  end
  if #done > 0 then redis.call('ZREM', agenda, unpack(done)) end
end

-- Notes that the archive has forgotten a post, which it may lose until then.
local function unsettled_note(record, agenda, account, before, number, id, looked_at)
  local noted = redis.call('HGET', record, RECORD.UNSETTLED) or struct.pack('>I8', before)
  redis.call('ZADD', agenda, 'NX', looked_at, AGENDA_UNSETTLED .. account)
  local more = struct.pack('>I8', number) .. id .. struct.pack('>I8', looked_at)
  redis.call('HSET', record, RECORD.UNSETTLED, noted .. more)
end

-- Takes the next token of an account, with a number above that one too.
local function token_next(record, above, nonce)
  local number = math.max(token_number(redis.call('HGET', record, RECORD.ARCHIVE_TOKEN)), tonumber(above)) + 1
  local token = struct.pack('>I8', number) .. nonce
  redis.call('HSET', record, RECORD.ARCHIVE_TOKEN, token)
  return token
end

-- archive_begin: gives out the next token of an account, and tells which of its posts may leave, the oldest first.
-- KEYS  record, outbox, agenda; a post that is to be deleted
-- ARGV  account, 8 random bytes, most elements, how many posts stay, how long they stay in ms, now in ms, when somebody
--       else may begin, the decision, a number that the token's must be above, 'd': a token for who takes away what is
--       left of a deleted account, '1': a token in any case, else ''; the id of the post that is to be deleted, or '',
--       and when that is looked at again; when a burial is looked at (0: it can't be lost); then ids of posts that are
--       looked at now
-- Reply {'ok', token, the outbox's first element, element, ...}; {'nothing'}: none may leave; {'gone'}: no such
--       account; {'deleted'}: it is deleted, and what is left of these posts goes; {'cold'}: the post that is to be
--       deleted has left memory, or lies above the floor; {'unsettled'}: too many that were deleted have yet to settle;
--       {'moving'}: posts of it are leaving; {'decision'}: the bucket knows another one
local function archive_begin(keys, args)
  local record, outbox, agenda = unpack(keys, 1, 3)
  local account, nonce, most, hot, hot_ms, now_ms, again_at = unpack(args, 1, 7)
  local decision, above, case, erased, soon, looked_at = unpack(args, 8, 13)
  most, hot, hot_ms, now_ms = tonumber(most), tonumber(hot), tonumber(hot_ms), tonumber(now_ms)
  if not is_decided(outbox, decision) then return { 'decision' } end
  local state = redis.call('HGET', record, RECORD.STATE)
  -- H170: a mover of whoever was deleted stores nothing any more.
  if case == 'd' and state ~= 'd' or case ~= 'd' and not is_known(state) then
    -- H178: with the posts that were to be looked at again, or every round begins with them, for good. H188: unless
    -- they may be there still.
    local done, is_deleted = { account }, state == 'd' and #args > 13
    for i = 14, is_deleted and 0 or #args do done[#done + 1] = args[i] .. account end
    redis.call('ZREM', agenda, unpack(done))
    return { is_deleted and 'deleted' or 'gone' }
  end
  -- H241: two moves of one account void each other, and while each has to settle first none would ever end. Who asks
  -- again, or since the archive knows a later token, is at it itself.
  local asks = #args > 13 and tonumber(above) == 0 and tonumber(looked_at) > 0
  if asks and string.sub(redis.call('HGET', record, RECORD.ARCHIVE_TOKEN) or '', 9) ~= nonce then
    local under_way = tonumber(redis.call('ZSCORE', agenda, account) or '')
    if under_way and under_way > now_ms and under_way <= tonumber(again_at) then return { 'moving' } end
  end
  -- H164: a thaw that was lost: what the archive forgets now nobody would delete here.
  if erased ~= '' and redis.call('EXISTS', keys[4]) == 0 then return { 'cold' } end
  -- H180: so was its move: noted as one that came back, it would leave from above the floor.
  if erased ~= '' and not is_archived(redis.call('LINDEX', outbox, 0), erased) then return { 'cold' } end
  local noted = erased ~= '' and redis.call('HGET', record, RECORD.UNSETTLED) or ''
  if #noted >= 8 + DELETION * DELETIONS_MAX then return { 'unsettled' } end
  local front = redis.call('LRANGE', outbox, 0, most)
  for i = #front, 2, -1 do
    if #front[i] ~= 8 then
      -- A move, or a cut, that failed half-way: what stands before goes.
      redis.call('LTRIM', outbox, i - 1, -1)
      front = redis.call('LRANGE', outbox, 0, most)
      break
    end
  end
  local last = math.min(#front, redis.call('LLEN', outbox) - hot)
  while last > 1 and ms_of(front[last]) + hot_ms > now_ms do last = last - 1 end
  if case == 'd' then last = 1 end
  if last <= 1 and case == '' then
    agenda_next(agenda, outbox, account, hot, hot_ms, {})
    return { 'nothing' }
  end
  -- H187: a burial that the archive loses.
  if case == 'd' and tonumber(looked_at) > 0 then redis.call('ZADD', agenda, looked_at, AGENDA_UNSETTLED .. account) end
  local token = token_next(record, above, nonce)
  if last > 1 or #args > 13 then redis.call('ZADD', agenda, again_at, account) end
  -- H175: a deletion that breaks off once the archive has forgotten the post: it is stored there anew.
  if erased ~= '' then redis.call('ZADD', agenda, soon, erased .. account) end
  for i = 14, #args do redis.call('ZADD', agenda, 'XX', again_at, args[i] .. account) end
  local reply = { 'ok', token, front[1] or '' }
  for i = 2, last do reply[i + 2] = front[i] end
  return reply
end

-- A sorted set as bytes that don't depend on how a server writes numbers; nothing: it is none.
local function set_bytes(key)
  local all = redis.pcall('ZRANGE', key, 0, -1, 'WITHSCORES')
  if all.err then return nil end
  local parts = { struct.pack('>I4', #all / 2) }
  for i = 1, #all, 2 do parts[#parts + 1] = struct.pack('>dI2', tonumber(all[i + 1]), #all[i]) .. all[i] end
  return table.concat(parts)
end

-- A post and all that lies beside it, in 40 characters. `pieces`: of each list, how many pieces it has; 0: it is small.
-- Nothing: it lies otherwise by now.
local function bundle_digest(keys, first, pieces)
  local stored = redis.pcall('GET', keys[first])
  if type(stored) ~= 'string' then return nil end
  local parts, piece = { struct.pack('>I4', #stored), stored }, first + 5
  for list = 1, 4 do
    local root, count = keys[first + list], string.byte(pieces, list)
    if count == 0 then
      local bytes = set_bytes(root)
      if not bytes then return nil end
      parts[#parts + 1] = struct.pack('>I4', 0) .. bytes
    else
      local tree = redis.pcall('GET', root)
      if type(tree) ~= 'string' then return nil end
      parts[#parts + 1] = struct.pack('>I4', #tree) .. tree
      for _ = 1, count do
        local bytes = set_bytes(keys[piece])
        if not bytes then return nil end
        parts[#parts + 1], piece = bytes, piece + 1
      end
    end
  end
  return redis.sha1hex(table.concat(parts))
end

local function pieces_in(counts)
  local all = 0
  for list = 1, 4 do all = all + string.byte(counts, list) end
  return all
end

-- archive_move: lets posts leave that the archive has, if everything still is as it was when they were stored there.
-- KEYS  record, outbox, agenda; then of each post that may leave: itself, its four lists, their pieces
-- ARGV  account, token, the outbox's first element, the elements that its floor passes (8 bytes each, joined), how many
--       posts stay, how long in ms, when those are looked at again that stay, their ids joined; then for each post that
--       may leave: id, digest ('': it is gone, and only its entry in the agenda goes), how many pieces each list has (4
--       bytes)
-- Reply {'ok'}; {'token'}: somebody has taken another one; {'outbox'}: it has changed; {'posts', n, ...}: these have
--       changed. Nothing has left then
local function archive_move(keys, args)
  local record, outbox, agenda = unpack(keys)
  local account, token, first, elements, hot, hot_ms, warm_at, warm = unpack(args, 1, 8)
  -- H163: a mover that was frozen goes on by an old look.
  if not is_there(record) or redis.call('HGET', record, RECORD.ARCHIVE_TOKEN) ~= token then return { 'token' } end
  local passed = #elements / 8
  local front = redis.call('LRANGE', outbox, 0, passed)
  -- H172: a post that was deleted since is no post that the floor may pass: the archive has it.
  if (front[1] or '') ~= first or table.concat(front, '', 2) ~= elements then return { 'outbox' } end
  local floor = archived_upto(first)
  local upto = passed > 0 and live_id(string.sub(elements, -8)) or floor
  if not upto then return { 'outbox' } end
  local changed, leaving, at = { 'posts' }, {}, 4
  for n = 0, (#args - 8) / 3 - 1 do
    local id, digest, pieces = unpack(args, 9 + 3 * n, 11 + 3 * n)
    local count = 5 + pieces_in(pieces)
    -- H162: nothing goes but what was stored.
    local is_there = redis.call('EXISTS', keys[at]) == 1
    local differs = digest == '' and is_there or digest ~= '' and bundle_digest(keys, at, pieces) ~= digest
    -- H243: of a post that a deletion has taken half-way, and that its outbox lists still, the archive would have the
    -- only one.
    local is_passed = not floor or order_of(id) > order_of(floor)
    if digest ~= '' and is_passed and not is_there then return { 'outbox' } end
    -- H242: above the floor a post that isn't there is gone.
    differs = differs or digest ~= '' and order_of(id) > order_of(upto)
    if differs then changed[#changed + 1] = n end
    leaving[n + 1] = { id, at, at + count - 1 }
    at = at + count
  end
  if #changed > 1 then return changed end
  -- What was made under this token has settled, and so has all that was made before.
  redis.call('HDEL', record, RECORD.UNSETTLED)
  -- Who stays is noted first: below the floor nobody else would look at it again.
  for i = 1, #warm, 8 do redis.call('ZADD', agenda, warm_at, string.sub(warm, i, i + 7) .. account) end
  local new_first = archived_first(token_number(token), upto)
  -- H165: the floor before the posts: above it a post that isn't there is gone.
  redis.call('LSET', outbox, passed, new_first)
  if passed > 0 then redis.call('LTRIM', outbox, passed, -1) end
  local done = {}
  for n = 1, #leaving do
    local id, from, to = unpack(leaving[n])
    redis.call('UNLINK', unpack(keys, from, to))
    done[n] = id .. account
  end
  agenda_next(agenda, outbox, account, tonumber(hot), tonumber(hot_ms), done)
  return { 'ok' }
end

-- archive_again: gives out a token under which the archive is to forget once more what it may have lost.
-- KEYS  record, outbox, agenda
-- ARGV  account, 8 random bytes, the decision, a number that the token's must be above, when that is looked at
-- Reply {'ok', token, the outbox's first element, the number that the archive must know, id, ...}; {'none'}: nothing
--       waits; {'decision'}: the bucket knows another one
local function archive_again(keys, args)
  local record, outbox, agenda = unpack(keys)
  local account, nonce, decision, above, looked_at = unpack(args)
  if not is_decided(outbox, decision) then return { 'decision' } end
  local noted = is_there(record) and redis.call('HGET', record, RECORD.UNSETTLED) or ''
  if #noted <= 8 then return { 'none' } end
  redis.call('ZADD', agenda, looked_at, AGENDA_UNSETTLED .. account)
  local again, ids = string.sub(noted, 1, 8), {}
  for at = 9, #noted, DELETION do
    ids[#ids + 1] = string.sub(noted, at + 8, at + 15)
    again = again .. string.sub(noted, at, at + 15) .. struct.pack('>I8', tonumber(looked_at))
  end
  -- H186: what is made under this token may be lost as well, and somebody may be about to strike what he has read.
  redis.call('HSET', record, RECORD.UNSETTLED, again)
  local token = token_next(record, above, nonce)
  return { 'ok', token, redis.call('LINDEX', outbox, 0) or '', string.sub(noted, 1, 8), unpack(ids) }
end

-- archive_settled: strikes what the archive loses no more.
-- KEYS  record, agenda
-- ARGV  account, what has settled, as it was noted; of a burial '', and when it was to be looked at
-- Reply 1; 0: it is noted otherwise by now
local function archive_settled(keys, args)
  local record, agenda = unpack(keys)
  local account, settled, burial_at = unpack(args)
  if burial_at then
    -- H240: the archive had lost it meanwhile, and what was made anew has to settle anew.
    local noted_for = redis.call('ZSCORE', agenda, AGENDA_UNSETTLED .. account)
    if not noted_for or tonumber(noted_for) ~= tonumber(burial_at) then return 0 end
    redis.call('ZREM', agenda, AGENDA_UNSETTLED .. account)
    return 1
  end
  local noted = redis.call('HGET', record, RECORD.UNSETTLED) or ''
  if string.sub(noted, 9, 8 + #settled) ~= settled then return 0 end
  local left = string.sub(noted, 9 + #settled)
  if left == '' then
    redis.call('HDEL', record, RECORD.UNSETTLED)
    redis.call('ZREM', agenda, AGENDA_UNSETTLED .. account)
  else
    -- The archive has the last one of these for good, and whatever comes after it follows from that.
    local before = string.sub(settled == '' and noted or string.sub(settled, -DELETION), 1, 8)
    redis.call('HSET', record, RECORD.UNSETTLED, before .. left)
    redis.call('ZADD', agenda, struct.unpack('>I8', string.sub(left, 17)), AGENDA_UNSETTLED .. account)
  end
  return 1
end

-- Writes a sorted set from (score, length, member), ....
local function set_write(key, bytes)
  local at, scored = 1, {}
  while at <= #bytes do
    local score, length, from = struct.unpack('>dI2', bytes, at)
    scored[#scored + 1] = string.format('%.17g', score)
    scored[#scored + 1] = string.sub(bytes, from, from + length - 1)
    at = from + length
    if #scored >= 500 or at > #bytes then
      redis.call('ZADD', key, unpack(scored))
      scored = {}
    end
  end
end

-- Writes a post with all that lies beside it, as they are given to `post_thaw`.
local function bundle_write(keys, stored, pieces, args)
  -- What a try that failed has left, or a deleted post's lists that are on their way out.
  redis.call('UNLINK', unpack(keys, 5))
  local piece, sets = 9, 11
  for list = 1, 4 do
    local root, count = keys[4 + list], string.byte(pieces, list)
    if count == 0 then
      set_write(root, args[sets])
      sets = sets + 1
    else
      for _ = 1, count do
        set_write(keys[piece], args[sets])
        piece, sets = piece + 1, sets + 1
      end
      redis.call('SET', root, args[6 + list])
    end
  end
  -- H174: last, so nobody sees it with half of its lists.
  redis.call('SET', keys[4], stored)
end

-- post_thaw: brings a post back into memory with all that lies beside it, below its author's floor, where it stays
-- until it is looked at again.
-- KEYS  record, outbox, agenda; the post, its four lists, their pieces
-- ARGV  account, id, the token that was given out last when it was looked up, the post, when it is looked at again, how
--       many pieces each list has (4 bytes); of each list the tree, of a small one ''; then of each list that is small
--       its members, and of each piece: (score, length, member) ...
-- Reply {'ok'}; {'there'}: it is there; {'changed'}: look again; {'gone'}: the account is
local function post_thaw(keys, args)
  local record, outbox, agenda, post = unpack(keys, 1, 4)
  local account, id, token, stored, warm_at, pieces = unpack(args, 1, 6)
  if not is_there(record) then return { 'gone' } end
  -- H164: it was deleted, or moved again, since its row was read.
  if (redis.call('HGET', record, RECORD.ARCHIVE_TOKEN) or '') ~= token then return { 'changed' } end
  if not is_archived(redis.call('LINDEX', outbox, 0), id) then return { 'changed' } end
  if redis.call('EXISTS', post) == 1 then return { 'there' } end
  redis.call('ZADD', agenda, warm_at, id .. account)
  bundle_write(keys, stored, pieces, args)
  return { 'ok' }
end

register('archive_begin', archive_begin, { 'allow-oom' })
register('archive_move', archive_move, { 'allow-oom' })
register('archive_again', archive_again, { 'allow-oom' })
register('archive_settled', archive_settled, { 'allow-oom' })
register('post_thaw', post_thaw, {})
-- What is deleted must come back first, also where there is no room for anything else.
register('post_thaw_to_delete', post_thaw, { 'allow-oom' })
