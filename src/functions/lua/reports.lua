-- Reports lie with the account that they are about: two hashes in its bucket, those that are open and those that are
-- resolved: id (8 bytes) -> random bytes that change with each change (8), what was reported. A third one counts:
-- reporter (8 bytes) -> how many of its reports are open.

-- Who made a report, as it stands there: one of its reports names it first.
local function reporter_in(report)
  return string.match(report, '^{"reporter":(%d+),', 9)
end

-- The 8 bytes of a number that is told in digits; a number of Lua's holds 53 bits.
local function bytes_of(digits)
  local bytes = { 0, 0, 0, 0, 0, 0, 0, 0 }
  for digit in string.gmatch(digits, '%d') do
    local carry = tonumber(digit)
    for i = 8, 1, -1 do
      local value = bytes[i] * 10 + carry
      bytes[i] = value % 256
      carry = (value - bytes[i]) / 256
    end
  end
  return string.char(unpack(bytes))
end

-- Tells how many of a reporter's reports are open, by counting those that are, `id` apart: so it is right also where an
-- earlier sending has failed half-way (H154). `report`: one of its reports.
local function tell_open(open, of_each, reporter, report, id, is_open)
  local by = reporter_in(report)
  local all, count = redis.call('HGETALL', open), is_open and 1 or 0
  for i = 1, #all, 2 do
    if all[i] ~= id and reporter_in(all[i + 1]) == by then count = count + 1 end
  end
  if count > 0 then redis.call('HSET', of_each, reporter, count) else redis.call('HDEL', of_each, reporter) end
end

-- Makes room for somebody's report where the list is full: the newest one goes of those who have most open, if that is
-- two more at least than the newcomer has. So nobody keeps others from reporting with few accounts (H159).
local function make_room(open, of_each, new)
  local all, counts, most = redis.call('HGETALL', open), {}, 0
  for i = 2, #all, 2 do
    local by = reporter_in(all[i])
    counts[by] = (counts[by] or 0) + 1
    if counts[by] > most then most = counts[by] end
  end
  if most < (counts[reporter_in(new)] or 0) + 2 then return false end
  local id, report
  for i = 1, #all, 2 do
    local is_newest = not id or order_of(all[i]) > order_of(id)
    if is_newest and counts[reporter_in(all[i + 1])] == most then id, report = all[i], all[i + 1] end
  end
  tell_open(open, of_each, bytes_of(reporter_in(report)), report, id, false)
  redis.call('HDEL', open, id)
  return true
end

-- report_add: somebody reports an account.
-- KEYS  open, resolved, of each reporter; the token, if there is one
-- ARGV  most, most of a reporter, id, reporter, value, token's TTL in ms
-- Reply {'ok', id}: of the one that was made with the token before, if it was; too many of this reporter's wait to be
--       resolved: {'limit'}; of all, and nobody has many more than this one: {'busy'}
local function report_add(keys, args)
  local open, resolved, of_each, token = unpack(keys)
  local most, most_of_one, id, reporter, value, token_ms = unpack(args)
  local before = token and redis.call('GET', token)
  if before then return { 'ok', before } end
  local is_open = redis.call('HGET', open, id)
  if is_open or redis.call('HGET', resolved, id) then
    -- Our own first sending; perhaps somebody has resolved it since.
    if is_open then tell_open(open, of_each, reporter, value, id, true) end
    if token then redis.call('SET', token, id, 'PX', token_ms) end
    return { 'ok', id }
  end
  if tonumber(redis.call('HGET', of_each, reporter) or 0) >= tonumber(most_of_one) then return { 'limit' } end
  if redis.call('HLEN', open) >= tonumber(most) and not make_room(open, of_each, value) then return { 'busy' } end
  redis.call('HSET', open, id, value)
  redis.call('HINCRBY', of_each, reporter, 1)
  if token then redis.call('SET', token, id, 'PX', token_ms) end
  return { 'ok', id }
end

-- Drops the oldest ones of a hash of reports, down to so many; not the one that has just come, however old it is.
local function drop_oldest(key, most, new)
  local ids = redis.call('HKEYS', key)
  if #ids <= most then return end
  table.sort(ids, function(a, b) return order_of(a) < order_of(b) end)
  local oldest = {}
  for i = 1, #ids do
    if #oldest < #ids - most and ids[i] ~= new then oldest[#oldest + 1] = ids[i] end
  end
  redis.call('HDEL', key, unpack(oldest))
end

-- report_move: a report is resolved, or opened again, or written again where it is.
-- KEYS  the hash that it is in, the one where it goes, of each reporter
-- ARGV  id, random bytes that the caller saw, value, most resolved ones ('' if it is opened again), reporter
-- Reply {'ok'}, {'gone'}, {'stamp'}: it has changed since
local function report_move(keys, args)
  local from, to, of_each = unpack(keys)
  local id, seen, value, resolved_most, reporter = unpack(args)
  local before, is_open = redis.call('HGET', from, id), resolved_most == ''
  if not before then return { 'gone' } end
  if string.sub(before, 1, 8) ~= seen then return { 'stamp' } end
  redis.call('HSET', to, id, value)
  if from ~= to then tell_open(is_open and to or from, of_each, reporter, value, id, is_open) end
  if not is_open then drop_oldest(to, tonumber(resolved_most), id) end
  -- Last: while it is there, all this can be done again.
  if from ~= to then redis.call('HDEL', from, id) end
  return { 'ok' }
end

-- report_ids: the newest reports below an id.
-- KEYS  a hash of reports
-- ARGV  id ('' for none), how many
-- Reply {id, ...}, newest first
local function report_ids(keys, args)
  local below, most = unpack(args)
  local all, found = redis.call('HKEYS', keys[1]), {}
  below = below ~= '' and order_of(below)
  for i = 1, #all do
    if not below or order_of(all[i]) < below then found[#found + 1] = all[i] end
  end
  table.sort(found, function(a, b) return order_of(a) > order_of(b) end)
  local reply = {}
  for i = 1, math.min(#found, tonumber(most)) do reply[i] = found[i] end
  return reply
end

register('report_add', report_add, {})
register('report_move', report_move, {})
register('report_ids', report_ids, { 'no-writes' })
