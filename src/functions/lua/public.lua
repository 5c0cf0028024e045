-- The newest public posts of a bucket, of all its accounts, are one string: entries of 16 bytes, a post's id and its
-- author's, in the order in which they came. An entry is a hint: who reads it asks the post.

local PUBLIC_ENTRY = 16
local PUBLIC_SLACK = 8 -- a list is cut once it is longer by this part of its bound

-- The entries that stay where no more than `most` may.
local function public_kept(entries, most)
  local count = math.floor(#entries / PUBLIC_ENTRY)
  local seen, ranks, of_rank = {}, {}, {}
  for at = count, 1, -1 do
    local author = string.sub(entries, at * PUBLIC_ENTRY - 7, at * PUBLIC_ENTRY)
    -- H198: every author's newest stays before anybody's second, as on the lists that posts name.
    local rank = (seen[author] or 0) + 1
    seen[author], ranks[at], of_rank[rank] = rank, rank, (of_rank[rank] or 0) + 1
  end
  local last, left = 1, most
  while of_rank[last] and of_rank[last] <= left do
    left = left - of_rank[last]
    last = last + 1
  end
  local kept, place = {}, most
  for at = count, 1, -1 do
    local stays = ranks[at] < last
    if ranks[at] == last and left > 0 then
      stays, left = true, left - 1
    end
    if stays then
      kept[place] = string.sub(entries, at * PUBLIC_ENTRY - PUBLIC_ENTRY + 1, at * PUBLIC_ENTRY)
      place = place - 1
    end
  end
  return table.concat(kept, '', place + 1, most)
end

-- Writes what is left of a list, in one command: half of one would lack posts.
local function public_write(key, entries)
  if entries == '' then redis.call('DEL', key) else redis.call('SET', key, entries) end
end

-- Cuts a list down, where its bucket knows that decision; how many entries went.
local function public_trim(key, most, decision)
  if not is_decided(key, decision) then return 0 end
  local entries = redis.call('GETRANGE', key, 0, -1)
  if #entries <= most * PUBLIC_ENTRY then return 0 end
  local kept = public_kept(entries, most)
  public_write(key, kept)
  return math.floor((#entries - #kept) / PUBLIC_ENTRY)
end

-- Adds the newest entry of a bucket.
local function public_note(key, entry, most, decision)
  local length = redis.call('APPEND', key, entry)
  if length > (most + math.floor(most / PUBLIC_SLACK)) * PUBLIC_ENTRY then public_trim(key, most, decision) end
end

-- Takes an entry off, if it is there.
local function public_take_off(key, entry)
  local entries = redis.call('GETRANGE', key, 0, -1)
  local at = string.find(entries, entry, 1, true)
  while at and at % PUBLIC_ENTRY ~= 1 do at = string.find(entries, entry, at + 1, true) end
  if not at then return 0 end
  public_write(key, string.sub(entries, 1, at - 1) .. string.sub(entries, at + PUBLIC_ENTRY))
  return 1
end

-- public_cut: cuts a bucket's public posts down to as many as was decided.
-- KEYS  the list
-- ARGV  most entries, the decision
-- Reply how many went; none if the bucket knows another decision
local function public_cut(keys, args)
  local most, decision = unpack(args, 1, 2)
  return public_trim(keys[1], tonumber(most), decision)
end

-- public_drop: takes entries off a bucket's public posts whose posts are not there.
-- KEYS  the list, then the post of each entry
-- ARGV  entry (post, author), ...
-- Reply how many went
local function public_drop(keys, args)
  local gone = {}
  for i = 1, #args do
    -- H204: a failover may have brought it back since its caller looked.
    local header = post_header(keys[1 + i])
    if header and string.sub(header, 9, 16) ~= string.sub(args[i], 9, 16) then gone[#gone + 1] = args[i] end
  end
  local went = 0
  for i = 1, #gone do went = went + public_take_off(keys[1], gone[i]) end
  return went
end

register('public_cut', public_cut, { 'allow-oom' })
register('public_drop', public_drop, { 'allow-oom' })
