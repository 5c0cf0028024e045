-- Reports lie with the account that they are about: two hashes in its bucket, those that are open and those that are
-- resolved: id (8 bytes) -> random bytes that change with each change (8), what was reported. A third one counts:
-- reporter (8 bytes) -> how many of its reports are open.

-- report_add: somebody reports an account.
-- KEYS  open, resolved, of each reporter; the token, if there is one
-- ARGV  most, most of a reporter, id, reporter, value, token's TTL in ms
-- Reply {'ok', id}: of the one that was made with the token before, if it was; too many wait to be resolved: {'busy'},
--       of this reporter {'stamp'}
local function report_add(keys, args)
  local token = keys[4]
  local before = token and redis.call('GET', token)
  if before then return { 'ok', before } end
  -- Our own first sending; perhaps somebody has resolved it since.
  if redis.call('HGET', keys[1], args[3]) or redis.call('HGET', keys[2], args[3]) then
    if token then redis.call('SET', token, args[3], 'PX', args[6]) end
    return { 'ok', args[3] }
  end
  if tonumber(redis.call('HGET', keys[3], args[4]) or 0) >= tonumber(args[2]) then return { 'stamp' } end
  if redis.call('HLEN', keys[1]) >= tonumber(args[1]) then return { 'busy' } end
  redis.call('HSET', keys[1], args[3], args[5])
  redis.call('HINCRBY', keys[3], args[4], 1)
  if token then redis.call('SET', token, args[3], 'PX', args[6]) end
  return { 'ok', args[3] }
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
  local value = redis.call('HGET', keys[1], args[1])
  if not value then return { 'gone' } end
  if string.sub(value, 1, 8) ~= args[2] then return { 'stamp' } end
  redis.call('HSET', keys[2], args[1], args[3])
  if keys[1] ~= keys[2] then
    local left = redis.call('HINCRBY', keys[3], args[5], args[4] == '' and 1 or -1)
    if left <= 0 then redis.call('HDEL', keys[3], args[5]) end
  end
  if args[4] ~= '' then drop_oldest(keys[2], tonumber(args[4]), args[1]) end
  -- Last: while it is there, all this can be done again.
  if keys[1] ~= keys[2] then redis.call('HDEL', keys[1], args[1]) end
  return { 'ok' }
end

-- report_ids: the newest reports below an id.
-- KEYS  a hash of reports
-- ARGV  id ('' for none), how many
-- Reply {id, ...}, newest first
local function report_ids(keys, args)
  local all, found = redis.call('HKEYS', keys[1]), {}
  local below = args[1] ~= '' and order_of(args[1])
  for i = 1, #all do
    if not below or order_of(all[i]) < below then found[#found + 1] = all[i] end
  end
  table.sort(found, function(a, b) return order_of(a) > order_of(b) end)
  local reply = {}
  for i = 1, math.min(#found, tonumber(args[2])) do reply[i] = found[i] end
  return reply
end

register('report_add', report_add, {})
register('report_move', report_move, {})
register('report_ids', report_ids, { 'no-writes' })
