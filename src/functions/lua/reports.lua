-- Reports lie with the account that they are about: two hashes in its bucket, those that are open and those that are
-- resolved: id (8 bytes) -> random bytes that change with each change (8), what was reported. A third one counts:
-- reporter (8 bytes) -> how many of its reports are open.

-- Tells how many of a reporter's reports are open, by counting those that are, `id` apart: so it is right also where an
-- earlier sending has failed half-way (H154). `report`: one of its reports, which name it first.
local function tell_open(open, of_each, reporter, report, id, is_open)
  local by = string.match(report, '^{"reporter":%d+,', 9)
  local all, count = redis.call('HGETALL', open), is_open and 1 or 0
  for i = 1, #all, 2 do
    if all[i] ~= id and string.sub(all[i + 1], 9, 8 + #by) == by then count = count + 1 end
  end
  if count > 0 then redis.call('HSET', of_each, reporter, count) else redis.call('HDEL', of_each, reporter) end
end

-- report_add: somebody reports an account.
-- KEYS  open, resolved, of each reporter; the token, if there is one
-- ARGV  most, most of a reporter, id, reporter, value, token's TTL in ms
-- Reply {'ok', id}: of the one that was made with the token before, if it was; too many wait to be resolved: {'busy'},
--       of this reporter {'stamp'}
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
  if tonumber(redis.call('HGET', of_each, reporter) or 0) >= tonumber(most_of_one) then return { 'stamp' } end
  if redis.call('HLEN', open) >= tonumber(most) then return { 'busy' } end
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
