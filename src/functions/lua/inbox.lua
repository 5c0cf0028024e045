-- An account's inbox (`inbox.rs`) is a list of what others did that it is told of, in the order of its ids: id (8
-- bytes: milliseconds times 256, and a number), type (1), who did it (8), what it is about (8), and of a post that a
-- member wrote in a group or a chat that one (8). Its last entry never goes but becomes blank, its id
-- and '-': so no id comes twice. It is cut where it is as long as one list node (of 8 kB) takes, or two.

local inbox_tell, inbox_tell_once, inbox_forget

do

local INBOX_KEPT, INBOX_CUT_AT = 240, 272
-- Entries of likes, and of reposts, of one post; of follows; of requests. More of them stay only where there is room.
local TOPIC_MOST = 48
local BLANK, BLANK_LEN = '-', 9
local LIKED, REPOSTED, QUOTED, FOLLOWED, REQUESTED = 108, 98, 113, 102, 114 -- 'l', 'b', 'q', 'f', 'r'

local function inbox_id(entry)
  local high, low = struct.unpack('>I4I4', entry)
  return high * 4294967296 + low
end

-- What entries stand together with: those of likes, and of reposts, of one post; of all follows; of all requests.
local function topic_of(entry)
  local kind = string.byte(entry, 9)
  if kind == LIKED or kind == REPOSTED then return string.sub(entry, 9, 9) .. string.sub(entry, 18) end
  if kind == FOLLOWED or kind == REQUESTED then return string.sub(entry, 9, 9) end
end

-- Which entries leave an inbox, by their places: what stands there twice, of topics that have too many the oldest, then
-- the oldest of whoever has most (as on lists that posts name: all accounts' newest stay before anybody's second).
local function inbox_leaving(all, over)
  local leaves, said, of_topic = {}, {}, {}
  for i = #all, 1, -1 do
    local told, topic = string.sub(all[i], 9), topic_of(all[i])
    if said[told] and over > 0 then
      leaves[i], over = true, over - 1
    else
      said[told] = true
      if topic then of_topic[topic] = (of_topic[topic] or 0) + 1 end
    end
  end
  for i = 1, #all do
    local topic = topic_of(all[i])
    if over > 0 and topic and not leaves[i] and of_topic[topic] > TOPIC_MOST then
      leaves[i], over = true, over - 1
      of_topic[topic] = of_topic[topic] - 1
    end
  end
  -- The newest of each account has rank 1.
  local of_account, ranks, of_rank = {}, {}, {}
  for i = #all, 1, -1 do
    if not leaves[i] then
      local by = string.sub(all[i], 10, 17)
      local rank = (of_account[by] or 0) + 1
      of_account[by], ranks[i] = rank, rank
      of_rank[rank] = (of_rank[rank] or 0) + 1
    end
  end
  local lowest = #of_rank
  while lowest > 0 and of_rank[lowest] <= over do
    over = over - of_rank[lowest]
    lowest = lowest - 1
  end
  for i = 1, #all do
    local rank = ranks[i]
    if rank and (rank > lowest or rank == lowest and over > 0) then
      leaves[i] = true
      if rank == lowest then over = over - 1 end
    end
  end
  return leaves
end

local function inbox_cut(key)
  local all = redis.call('LRANGE', key, 0, -1)
  local leaves = inbox_leaving(all, #all - INBOX_KEPT)
  for i = 1, #all do
    if leaves[i] then redis.call('LREM', key, 1, all[i]) end
  end
end

-- Tells an account something; what it was told last isn't told again. `told`: type, who, what about.
function inbox_tell(key, told, caller_ms)
  local last = redis.call('LINDEX', key, -1)
  local id = caller_ms * 256
  if last then
    if string.sub(last, 9) == told then return end
    -- H215: ids rise, whatever clocks do, and whatever was taken off.
    id = math.max(id, inbox_id(last) + 1)
  end
  local entry = struct.pack('>I4I4', math.floor(id / 4294967296), id % 4294967296) .. told
  if last and #last == BLANK_LEN then
    redis.call('LSET', key, -1, entry)
  elseif redis.call('RPUSH', key, entry) >= INBOX_CUT_AT then
    inbox_cut(key)
  end
end

-- Takes an entry off; the last one becomes blank.
local function inbox_take_off(key, entry, is_last)
  if is_last then
    redis.call('LSET', key, -1, string.sub(entry, 1, 8) .. BLANK)
  else
    redis.call('LREM', key, 1, entry)
  end
end

-- Forgets that an account was told something. Of a post that is gone nobody knows any more who wrote it as a member of
-- a group: that one stands for who did.
function inbox_forget(key, told)
  local all, kind, ends = redis.call('LRANGE', key, 0, -1), string.byte(told), nil
  if kind == QUOTED then ends = string.sub(told, 10) .. string.sub(told, 2, 9) end
  for i = 1, #all do
    local is_it = string.sub(all[i], 9) == told
    is_it = is_it or kind == string.byte(all[i], 9) and ends == string.sub(all[i], 18)
    if is_it then inbox_take_off(key, all[i], i == #all) end
  end
end

-- The same as inbox_tell, but what stands there already isn't told again; and of follows, and requests, a newer one of
-- an account takes the place of its older one, whatever they are about.
function inbox_tell_once(key, told, caller_ms)
  local all, older, is_told = redis.call('LRANGE', key, 0, -1), {}, false
  local kind, who = string.byte(told), string.sub(told, 1, 9)
  local is_one = kind == FOLLOWED or kind == REQUESTED
  for i = 1, #all do
    local is_same = string.sub(all[i], 9) == told
    is_told = is_told or is_same
    if is_one and not is_same and string.sub(all[i], 9, 17) == who then older[#older + 1] = all[i] end
  end
  -- H216: all is done again where something behind it fails.
  if not is_told then inbox_tell(key, told, caller_ms) end
  for i = 1, #older do inbox_take_off(key, older[i], is_told and older[i] == all[#all]) end
end

-- inbox_add: tells an account of what another bucket has: a follow, or what came onto a list of its post in a group.
-- KEYS  inbox, its owner's record
-- ARGV  type, who, what about, and in which group or chat (17 or 25 bytes), the caller's milliseconds
-- Reply 1; 0: there is no such account
local function inbox_add(keys, args)
  local told, caller_ms = unpack(args, 1, 2)
  if not is_there(keys[2]) then return 0 end
  inbox_tell_once(keys[1], told, tonumber(caller_ms))
  return 1
end

-- inbox_drop: takes entries off an inbox.
-- KEYS  inbox
-- ARGV  '' or an id: all up to that one; then ids. 8 bytes each
-- Reply how many
local function inbox_drop(keys, args)
  local upto, ids, dropped = args[1], {}, 0
  -- H214: what has come since its caller looked stays.
  upto = upto ~= '' and inbox_id(upto) or -1
  for i = 2, #args do ids[args[i]] = true end
  local all = redis.call('LRANGE', keys[1], 0, -1)
  for i = 1, #all do
    if #all[i] ~= BLANK_LEN and (inbox_id(all[i]) <= upto or ids[string.sub(all[i], 1, 8)]) then
      inbox_take_off(keys[1], all[i], i == #all)
      dropped = dropped + 1
    end
  end
  return dropped
end

register('inbox_add', inbox_add, {})
register('inbox_drop', inbox_drop, { 'allow-oom' })

end
