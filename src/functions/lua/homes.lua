-- A home is a list of 16-byte entries, (post id, author), in order of arrival. An entry whose author has its top bit
-- set is a *watermark*: every entry before it has an id <= its own. The first entry always is one, the floor:
-- whatever belongs here and is above it, is here. All ones in its author: it counts. Else the author is the nonce of
-- the fill that is under way, and nothing is vouched for. Arguments `fit` of a home are four: cut_at, kept, node_max,
-- the decision that they follow from, or 'own', 'none' (`HomeFit` in Rust says what they mean).

local GROUP = 16
local NEAR = 4 -- a watermark among so many last entries is near enough
local WHOLE = '\255\255\255\255\255\255\255\255'

-- Ids as numbers that order like them: doubles of the same bits. Strings compare by locale, and 64 bits don't fit.
local function order_of(id) return (struct.unpack('>d', id)) end

-- The id of an outbox's element: where its post is gone, the top bit is set.
local function live_id(id)
  if string.byte(id) < 128 then return id end
  return string.char(string.byte(id) - 128) .. string.sub(id, 2)
end

local function is_watermark(entry) return string.byte(entry, 9) >= 128 end

-- Their places in a table: a table with names would be built by hashing, once for each call.
local CUT_AT, KEPT, NODE_MAX, DECISION, IS_DECIDED = 1, 2, 3, 4, 5

local function fit_of(args, first)
  return { args[first] + 0, args[first + 1] + 0, args[first + 2] + 0, args[first + 3] }
end

-- Whether homes may be cut so. All of a call's lie in one bucket: it is asked once.
local function may_cut(key, fit)
  if fit[IS_DECIDED] == nil then fit[IS_DECIDED] = may_drop(key, fit[DECISION]) end
  return fit[IS_DECIDED]
end

-- Writes a home anew, from its end on, in parts that begin with a watermark: whichever command fails, what is there is
-- true, a shorter home or none (H98). And then what the caller is about does not fail (H89). Gives whether all is
-- written.
local PART = 4000 -- about half of what one command takes from Lua
local function write_anew(key, entries)
  redis.call('DEL', key)
  local last = #entries
  while last > 0 do
    local first = math.max(last - PART + 1, 1)
    while first > 1 and not is_watermark(entries[first]) do first = first - 1 end
    local part = {}
    for i = last, first, -1 do part[#part + 1] = entries[i] end
    if type(redis.pcall('LPUSH', key, unpack(part))) == 'table' then return end
    last = first - 1
  end
  return true
end

-- The watermark that holds for all of a home up to the last of these entries; nothing if none is among them.
local function watermark_of(entries)
  local unpack_, byte, best, highest = struct.unpack, string.byte, -1, nil
  for i = #entries, 1, -1 do
    local entry = entries[i]
    local order = unpack_('>d', entry)
    if order > best then best, highest = order, entry end
    -- H5: the nonce is in every watermark.
    if byte(entry, 9) >= 128 then return string.sub(highest, 1, 8) .. string.sub(entry, 9) end
  end
end

-- Cuts the front off. What then comes first, a watermark that holds for all before it, is the floor, true by itself.
local function cut(key, length, fit)
  if length < fit[CUT_AT] or not may_cut(key, fit) then return end
  local last = length - fit[KEPT]
  -- Watermarks stand GROUP apart where they come at once: as a rule one stands there.
  local place = last - last % GROUP
  if not is_watermark(redis.call('LINDEX', key, place)) then
    -- Deliveries came faster than watermarks. Waiting for one would let the home grow.
    local watermark = watermark_of(redis.call('LRANGE', key, 0, place))
    -- A home has at least the floor: else fsck finds it.
    if not watermark then return nil end
    -- First the floor: what it no longer vouches for may go.
    redis.call('LSET', key, 0, watermark)
    redis.call('LSET', key, place, watermark)
  end
  -- H3, H4: the floor rises to what was cut.
  redis.call('LTRIM', key, place, -1)
  if length > fit[NODE_MAX] then
    -- It took a second list node, which would stay for many cuts: written anew it fits into one.
    write_anew(key, redis.call('LRANGE', key, 0, -1))
  end
end

-- Appends a watermark, unless one is near. Late, lost and doubled calls do no harm, so it asks nothing about lengths.
local function tidy(key, fit)
  local entries = redis.call('LRANGE', key, 0 - GROUP, -1)
  -- Of several that come late or twice, one is enough: others would take the places of posts.
  for i = math.max(#entries - NEAR + 1, 1), #entries do
    if is_watermark(entries[i]) then return cut(key, redis.call('LLEN', key), fit) end
  end
  local watermark = watermark_of(entries)
  if not watermark then
    -- Deliveries came between: the last watermark stands further back; at the latest it is the first entry (H3).
    watermark = watermark_of(redis.call('LRANGE', key, 0, -1))
    if not watermark then return end
  end
  cut(key, redis.call('RPUSH', key, watermark), fit)
end

-- home_tidy: for whoever made a home's length one that is due.
-- KEYS  home
-- ARGV  fit
-- Reply 1
local function home_tidy(keys, args)
  tidy(keys[1], fit_of(args, 1))
  return 1
end

-- home_deliver: delivers an entry to the homes of all members of one piece. A missing home is a dormant reader's.
-- KEYS  the set, its piece (again the set while it is small); the homes lie in the same slot, undeclared
-- ARGV  piece (-1: small), depth, what homes' keys begin with, entry, fit
-- Reply {'ok', delivered, members} or {'tree', tree}: the caller's copy is old, nothing was delivered
local function home_deliver(keys, args)
  local piece, depth, head, entry = unpack(args, 1, 4)
  local ok, answer = check_place(keys[1], tonumber(piece), tonumber(depth))
  if not ok then return answer end
  local members = redis.call('ZRANGE', keys[2], 0, -1)
  local fit, call, delivered = fit_of(args, 5), redis.call, 0
  for i = 1, #members do
    local home = head .. members[i]
    -- H1: only a fill creates a home, nothing else.
    local length = call('RPUSHX', home, entry)
    if length > 0 then
      delivered = delivered + 1
      if length % GROUP == 0 then tidy(home, fit) end
    end
  end
  return { 'ok', delivered, #members }
end

-- home_deliver_to: delivers an entry to the homes of accounts of one bucket that the caller names, as far as they
-- follow its author: nobody else would ever be shown it, and it would take the place of what is for them.
-- KEYS  home of the first of them; the others, and whom they follow, lie in the same slot, undeclared
-- ARGV  what keys of the bucket begin with, author, entry, fit, account, ...
-- Reply {'ok', delivered, accounts}
local function home_deliver_to(_, args)
  local head, author, entry = unpack(args, 1, 3)
  local fit, delivered = fit_of(args, 4), 0
  for i = 8, #args do
    -- H60: a delivery by name reaches only who follows.
    if holds(head, '@following:' .. args[i], author) then
      local home = head .. 'h' .. args[i]
      local length = redis.call('RPUSHX', home, entry)
      if length > 0 then
        delivered = delivered + 1
        if length % GROUP == 0 then tidy(home, fit) end
      end
    end
  end
  return { 'ok', delivered, #args - 7 }
end

-- home_begin: a home that is to be filled, by us or by who has begun already.
-- KEYS  account's record, home, bucket's days
-- ARGV  nonce (top bit set, not all ones), account, day
-- Reply {'fill', nonce}; {'whole'}: there is nothing to fill; {'gone'}: there is no such account, or it is deleted
local function home_begin(keys, args)
  local nonce, account, day = unpack(args, 1, 3)
  if not is_there(keys[1]) then return { 'gone' } end
  local first = redis.call('LINDEX', keys[2], 0)
  if not first then
    redis.call('ZADD', keys[3], day, account)
    redis.call('HSET', keys[1], RECORD.LAST_READ_DAY, day)
    redis.call('RPUSH', keys[2], '\0\0\0\0\0\0\0\0' .. nonce)
    return { 'fill', nonce }
  end
  local begun = string.sub(first, 9)
  if begun == WHOLE then return { 'whole' } end
  return { 'fill', begun }
end

-- home_finish: writes a home that was being filled: what was pulled, then what has arrived meanwhile.
-- KEYS  home
-- ARGV  nonce, floor (down to where everything was pulled), fit, entries by id, with the watermarks that belong there
-- Reply 1, or 0: it is somebody else's fill by now, or none
local function home_finish(keys, args)
  -- H7: the floor of a fill is where its pull ended.
  local nonce, floor = unpack(args, 1, 2)
  local home = keys[1]
  local arrived = redis.call('LRANGE', home, 0, -1)
  -- H9, H10: only the fill with that nonce finishes.
  if #arrived == 0 or string.sub(arrived[1], 9) ~= nonce then return 0 end
  local fit, pulled = fit_of(args, 3), 7
  -- H4: a fill ends no lower than its home was cut meanwhile.
  if order_of(arrived[1]) > order_of(floor) then
    -- It was cut while it was filled: what lies below is no longer complete. A floor within what was pulled.
    floor = string.sub(arrived[1], 1, 8)
    local least = order_of(floor)
    while pulled <= #args and (is_watermark(args[pulled]) or order_of(args[pulled]) <= least) do
      pulled = pulled + 1
    end
  end
  local all = { floor .. WHOLE }
  for i = pulled, #args do all[#all + 1] = args[i] end
  local highest = pulled <= #args and string.sub(args[#args], 1, 8) or floor
  local best = order_of(highest)
  for i = 2, #arrived do
    local entry = arrived[i]
    -- H6: what arrived during a fill loses its watermarks.
    if not is_watermark(entry) then
      all[#all + 1] = entry
      local order = order_of(entry)
      if order > best then highest, best = string.sub(entry, 1, 8), order end
      if #all % GROUP == 0 then all[#all + 1] = highest .. WHOLE end
    end
  end
  if not write_anew(home, all) then return 1 end
  cut(home, #all, fit)
  return 1
end

-- home_drop: drops a home whose fill has come to a halt; the next read fills it.
-- KEYS  home
-- ARGV  the fill's nonce
-- Reply 1 or 0
local function home_drop(keys, args)
  local nonce = args[1]
  local first = redis.call('LINDEX', keys[1], 0)
  if not first or string.sub(first, 9) ~= nonce then return 0 end
  return redis.call('DEL', keys[1])
end

-- home_sweep: drops the home of an account that hasn't read since `day`.
-- KEYS  bucket's days, home
-- ARGV  account, day, the decision that it follows from, or 'own', 'none' ('': somebody says so by hand)
-- Reply 1, or 0: it has read, or the bucket knows another decision
local function home_sweep(keys, args)
  local account, day, decision = unpack(args, 1, 3)
  if decision ~= '' and not may_drop(keys[1], decision) then return 0 end
  local last = redis.call('ZSCORE', keys[1], account)
  if last and tonumber(last) > tonumber(day) then return 0 end
  redis.call('DEL', keys[2])
  redis.call('ZREM', keys[1], account)
  return 1
end

register('home_tidy', home_tidy, {})
register('home_deliver', home_deliver, {})
register('home_deliver_to', home_deliver_to, {})
register('home_begin', home_begin, {})
register('home_finish', home_finish, {})
register('home_drop', home_drop, { 'allow-oom' })
register('home_sweep', home_sweep, { 'allow-oom' })
