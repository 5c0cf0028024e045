-- How an account's posts reach its followers stands in its record: m, a letter and 8 random bytes: P push, Q promoting
-- (still pushed, while its followers are told to pull), L pull. b: the last post before pushing began.

-- mode_set: changes an account's mode, if it is what the caller saw, and has that carried out.
-- KEYS  record, outbox, journal
-- ARGV  mode that the caller saw ('' none), mode that it becomes ('' it stays), who asks: 'x' who carries a change out,
--       'p' the policy (refused if somebody told by hand), 'h' somebody by hand, then what is told ('' nothing any
--       more), graph stamp that the caller saw, new graph stamp (all '' but for 'h'), most entries, then entry, value,
--       or nothing
-- Reply {'ok'}; {'gone'}: no such account; {'stamp', mode}: something is another; {'busy'}: the journal is full
local function mode_set(keys, args)
  local seen, mode, who, by_hand, graph_seen, graph, journal_most = unpack(args, 1, 7)
  if not is_there(keys[1]) then return { 'gone' } end
  local record = redis.call('HMGET', keys[1], RECORD.MODE, RECORD.MODE_BY_HAND, RECORD.GRAPH_STAMP)
  local before, told = record[1] or '', record[2] or ''
  -- H25: pull only if it is still that promotion.
  if before ~= seen or (who == 'p' and told ~= '') or (who == 'h' and record[3] ~= graph_seen) then
    return { 'stamp', before }
  end
  if #args > 7 then
    if journal_full(keys[3], tonumber(journal_most), 1) then return { 'busy' } end
    if not journal_first(keys[3], args, 8, 9) then return { 'stamp', before } end
  end
  if string.sub(mode, 1, 1) == 'P' then
    local last = redis.call('LINDEX', keys[2], -1)
    if last then redis.call('HSET', keys[1], RECORD.PUSHED_SINCE, live_id(string.sub(last, -8))) end
  end
  if mode ~= '' then redis.call('HSET', keys[1], RECORD.MODE, mode) end
  if who == 'h' then redis.call('HSET', keys[1], RECORD.MODE_BY_HAND, by_hand, RECORD.GRAPH_STAMP, graph) end
  return { 'ok' }
end

-- pulls_add: notes how often an account was pulled.
-- KEYS  record
-- ARGV  times, the caller's milliseconds, how old rates may be in ms
-- Reply what a policy wants to know (rates.lua), or {}: there is no such account
local function pulls_add(keys, args)
  local pulls, caller_ms, every_ms = unpack(args, 1, 3)
  if not is_there(keys[1]) then return {} end
  return note_rates(keys[1], tonumber(caller_ms), tonumber(every_ms), tonumber(pulls))
end

-- Has those accounts pull an author that follow it, and counts them. The mark first: with a new stamp and without the
-- mark a reader would believe that it need not pull.
local function mark_all(members, head, author, mark, stamp)
  local marked = 0
  for i = 1, #members do
    -- H25: only who follows gets a mark.
    if holds(head, '@following:' .. members[i], author) then
      -- H25, H27: a new mark also where one stands.
      mark_renew({ head .. 'm' .. members[i] }, { author, mark, '', '' })
      redis.call('HSET', head .. 'a' .. members[i], RECORD.MARKS_STAMP, stamp)
      marked = marked + 1
    end
  end
  return marked
end

-- marks_piece: has all followers in one piece pull an author from now on.
-- KEYS  the set, its piece (again the set while it is small); what belongs to the followers lies in the same slot,
--       undeclared
-- ARGV  piece (-1: small), depth, what keys of the bucket begin with, author, mark, new marks stamp
-- Reply {'ok', marked, members} or {'tree', tree}
local function marks_piece(keys, args)
  local piece, depth, head, author, mark, stamp = unpack(args, 1, 6)
  local ok, answer = check_place(keys[1], tonumber(piece), tonumber(depth))
  if not ok then return answer end
  local members = redis.call('ZRANGE', keys[2], 0, -1)
  return { 'ok', mark_all(members, head, author, mark, stamp), #members }
end

-- marks_add: the same for accounts of one bucket that the caller names.
-- KEYS  marks of the first of them; the rest undeclared
-- ARGV  what keys of the bucket begin with, author, mark, new marks stamp, account, ...
-- Reply {'ok', marked, accounts}
local function marks_add(_, args)
  local head, author, mark, stamp = unpack(args, 1, 4)
  local members = { unpack(args, 5) }
  return { 'ok', mark_all(members, head, author, mark, stamp), #members }
end

register('mode_set', mode_set, {})
register('pulls_add', pulls_add, {})
register('marks_piece', marks_piece, {})
register('marks_add', marks_add, {})
