-- The lists of a post, who likes it and what answers, reposts or quotes it, are local sets beside it, and how many
-- members each has stands in the post itself. So both change in one function, and no list outlives its post by that.

-- Writes how many members a list has into its post.
local function write_count(post, offset, members)
  redis.call('SETRANGE', post, offset, struct.pack('>I4', math.min(members, 4294967295)))
end

-- list_set: puts a member on a list of a post, or takes it off, and counts anew.
-- KEYS  post, list, its piece (the list while it is small), when something was taken off a list of this bucket last;
--       the author's inbox, if it is told
-- ARGV  the post's author, where the number stands in the post, '+' or '-', piece (-1: small), depth, most members of a
--       piece, score ('+': a member never gets a lower one; '-': only if the member's is below, '' always), member,
--       '+': when something was taken off last, as the caller read before it looked at what it adds ('': whenever);
--       '-': the caller's milliseconds; what the author is told of who comes, and not any more of who goes (17 or 25
--       bytes, '' nothing), the caller's milliseconds
-- Reply {'ok'}; {'member'}: a member of a group or a chat wrote the post, and has to be told first: nothing was added;
--       {'gone'}: there is no such post of that author here, nothing was added; {'late'}: something was taken off
--       since, perhaps this; {'tree', tree}; {'full'}; {'unreadable'}: something stands there that this release can't
--       read
local function list_set(keys, args)
  local author, count_at, sign, piece, depth, piece_most, score, member, when, told, told_ms = unpack(args, 1, 11)
  local post, key, place = keys[1], keys[2], keys[3]
  piece, depth = tonumber(piece), tonumber(depth)
  local header = post_header(post)
  if not header then return { 'unreadable' } end
  local is_there = string.sub(header, 9, 16) == author
  local ok, answer = check_place(key, piece, depth)
  if not ok then return answer end
  -- Before anything goes: what is gone cannot be asked for in a slot that moves.
  local is_on_it, members, by = redis.call('ZSCORE', place, member), set_total(key, piece), 0
  if sign == '+' then
    -- H53: no list grows beside a post that is gone.
    if not is_there then return { 'gone' } end
    if when ~= '' and tonumber(redis.call('GET', keys[4]) or 0) ~= tonumber(when) then return { 'late' } end
    if not is_on_it and redis.call('ZCARD', place) >= tonumber(piece_most) and depth < DEPTH_MAX then
      return { 'full' }
    end
    -- H213, H216: before it is on it: who tries again tells what it finds on it to nobody.
    if told ~= '' and not is_on_it and is_by_member(header) then return { 'member' } end
    if told ~= '' and not is_on_it then inbox_tell(keys[5], told, tonumber(told_ms)) end
    by = redis.call('ZADD', place, 'GT', score, member)
  else
    -- H126: first, and also if it isn't on it: an addition may still be on its way.
    removal_told(keys[4], when)
    local stays = is_on_it and score ~= '' and tonumber(is_on_it) >= tonumber(score)
    if told ~= '' and not stays then inbox_forget(keys[5], told) end
    if is_on_it and not stays then by = 0 - redis.call('ZREM', place, member) end
  end
  if piece >= 0 and by ~= 0 then redis.call('BITFIELD', key, 'INCRBY', 'u56', 8, by) end
  members = members + by
  if is_there then write_count(post, count_at, members) end
  if is_there then return { 'ok' } end
  -- H171: perhaps it has left memory, with its lists.
  return { 'gone' }
end

-- list_drop: drops keys of the lists of a post that is gone.
-- KEYS  post, key, ...
-- Reply 1, or 0: the post is there
local function list_drop(keys)
  if redis.call('EXISTS', keys[1]) == 1 then return 0 end
  redis.call('UNLINK', unpack(keys, 2))
  return 1
end

-- list_recount: writes how many members a list has into its post.
-- KEYS  post, list
-- ARGV  the post's author, where the number stands in the post
-- Reply 1, or 0: there is no such post of that author, or it can't be read
local function list_recount(keys, args)
  local author, count_at = unpack(args, 1, 2)
  if string.sub(post_header(keys[1]) or '', 9, 16) ~= author then return 0 end
  local is_small = redis.call('TYPE', keys[2]).ok ~= 'string'
  write_count(keys[1], count_at, set_total(keys[2], is_small and -1 or 0))
  return 1
end

register('list_set', list_set, {})
register('list_drop', list_drop, { 'allow-oom' })
register('list_recount', list_recount, { 'allow-oom' })
