-- One conditional write: what a caller decided by what it saw goes to one bucket, if what it saw is still so. Names and
-- order of the arguments are those of `functions/write.rs`, and a test there compares them with these lines.
local WRITE_HEAD = '>I6I4BBBBBBBBB'
local WRITE_PLACE = '>Bi4BI4I4'
-- Arguments of a cell; bytes that are compared of what stands in one.
local CELL, CELL_BEGIN = 5, 8

-- Who may write: anybody with a record; an account that is there; one that is neither suspended nor deleted.
local THERE, ACTIVE = 1, 2

local function set_cells(keys, args, first, cells)
  for n = 0, cells - 1 do
    local a = first + CELL * n
    -- H14: a follow sets a mark.
    if args[a + 2] ~= '' then redis.call('HSET', keys[2 + n], args[a], args[a + 2]) end
  end
end

local function drop_cells(keys, args, first, cells)
  for n = 0, cells - 1 do
    local a = first + CELL * n
    if args[a + 2] == '' then redis.call('HDEL', keys[2 + n], args[a]) end
  end
end

-- How many bytes the values of a hash have together.
local function bytes_of_values(hash)
  local all, bytes = redis.call('HGETALL', hash), 0
  for n = 2, #all, 2 do bytes = bytes + #all[n] end
  return bytes
end

-- Looks whether cells are as they were seen, and have room. Gives why not.
local function refused_cells(keys, args, first, cells)
  -- What cells before have added to their hashes: fields, and bytes.
  local added, grown = {}, {}
  for n = 0, cells - 1 do
    local a, hash = first + CELL * n, keys[2 + n]
    local must_be, becomes, most, bytes_most = unpack(args, a + 1, a + 4)
    local is_seen = must_be ~= '*' or bytes_most ~= ''
    local now = is_seen and redis.call('HGET', hash, args[a]) or ''
    if must_be ~= '*' and string.sub(now, 1, CELL_BEGIN) ~= must_be then return { 'changed' } end
    if most ~= '' then
      if redis.call('HLEN', hash) + (added[hash] or 0) >= tonumber(most) then return { 'room', n } end
      added[hash] = (added[hash] or 0) + 1
    end
    if bytes_most ~= '' and #becomes > #now then
      local more = (grown[hash] or 0) + #becomes - #now
      if bytes_of_values(hash) + more > tonumber(bytes_most) then return { 'bytes', n } end
      grown[hash] = more
    end
  end
end

-- Looks whether members may come and go: gives what each does (is it put, its piece, by how many its set grows, to how
-- many), and whether any changes its set; or nothing, and why not.
local function plan_members(keys, args, first, members, first_set)
  local plan, changes = {}, false
  for n = 0, members - 1 do
    local a, key, place = first + 3 * n, keys[first_set + 2 * n], keys[first_set + 2 * n + 1]
    local is_put, piece, depth, piece_most, set_most = struct.unpack(WRITE_PLACE, args[a])
    local ok, total = check_place(key, piece, depth)
    if not ok then return nil, total.err and total or { 'tree', n, total[2] } end
    local is_member = redis.call('ZSCORE', place, args[a + 1])
    local by = 0
    if is_put == 1 and not is_member then
      if args[a + 2] == RECORD.FOLLOWING then
        set_most = own_limit(redis.call('HGET', keys[1], RECORD.OWN_LIMITS) or '', RECORD.FOLLOWING) or set_most
      end
      if total >= set_most then return nil, { 'limit', n, set_most } end
      local card = piece < 0 and total or redis.call('ZCARD', place)
      if card >= piece_most and depth < DEPTH_MAX then return nil, { 'full', n } end
      by = 1
    elseif is_put == 0 and is_member then
      by = -1
    end
    changes = changes or by ~= 0
    plan[n] = { is_put, piece, by, total + by }
  end
  return plan, changes
end

local function change_members(keys, args, first, members, first_set, plan, tick)
  for n = 0, members - 1 do
    local a, key, place = first + 3 * n, keys[first_set + 2 * n], keys[first_set + 2 * n + 1]
    local is_put, piece, by, total = unpack(plan[n])
    local count_field = args[a + 2]
    -- H128, H155: numbers never say less than there are: they change before somebody comes, and after somebody goes.
    -- Who reads that somebody blocks nobody asks for no block.
    if by < 0 then redis.call('ZREM', place, args[a + 1]) end
    if piece >= 0 and by ~= 0 then redis.call('BITFIELD', key, 'INCRBY', 'u56', 8, by) end
    if count_field ~= '' then redis.call('HSET', keys[1], count_field, total) end
    if is_put == 1 then redis.call('ZADD', place, string.format('%.0f', tick), args[a + 1]) end
  end
end

-- bucket_write: registered below by the name of each use.
-- KEYS  record; the hash of each cell; for each member its set, and its piece (the set while it is small); the clock,
--       if a tick is taken; the home, if its floor is told; the journal, if there are entries
-- ARGV  head; the record's fields that are compared, then what each must be; field, value, ... of the record that are
--       set; entry, value, ... of the journal; of each cell: field, must_be, becomes, most, bytes_most; of each member:
--       place, member, count_field (the record's for the set's size, or ''); limits, if there are any. must_be: ''
--       nothing, '*' anything, else in the record the value, in a cell what its first 8 bytes are. becomes: '' it goes.
--       most: how many there may be in the hash before, bytes_most: how many bytes its
--       values may have afterwards, if this one grows; or ''
-- Reply {'ok', 1, or 0 if nothing has changed}, and if the home's floor is told: tick, floor or '', what was compared;
--       {'gone'}: there is no such record; {'state', state}: it may not; {'changed'}: a value, or the caller's
--       entries, are others by now; {'busy'}: the journal is full; {'often', n, most, parts}: limit n is reached; of
--       cell or member n: {'room', n}, {'bytes', n}, {'limit', n, most}, {'full', n}, {'tree', n, tree}
local function bucket_write(keys, args)
  local caller_ms, journal_most, least_state, takes_tick, tells_floor, only_changes, compared, fields, entries, cells,
    limited = struct.unpack(WRITE_HEAD, args[1])
  local record = redis.call('HMGET', keys[1], RECORD.STATE, unpack(args, 2, compared + 1))
  local state = record[1]
  if not state then return { 'gone' } end
  for i = 2, compared + 1 do
    local must_be = args[compared + i]
    -- H21, H54: toggles compare the stamp; a like or bookmark compares the ties stamp.
    if must_be ~= '*' and (record[i] or '') ~= must_be then return { 'changed' } end
  end
  if least_state == ACTIVE and not is_active(state) then return { 'state', state } end
  if least_state == THERE and not is_known(state) then return { 'state', state } end
  local first_field = 2 * compared + 2
  local first_entry = first_field + 2 * fields
  local first_cell = first_entry + 2 * entries
  local first_member = first_cell + CELL * cells
  local home = entries > 0 and #keys - 1 or #keys
  local why = refused_cells(keys, args, first_cell, cells)
  if why then return why end
  local members, first_set = (#args - limited - first_member + 1) / 3, 2 + cells
  local plan, changes = plan_members(keys, args, first_member, members, first_set)
  if not plan then return changes end
  changes = changes or only_changes == 0
  -- Who only takes back, answers or goes has all of the journal.
  local actor = least_state == ACTIVE and string.sub(keys[1], -8) or nil
  if entries > 0 and changes and journal_full(keys[#keys], journal_most, entries, actor) then return { 'busy' } end
  -- A change that finds itself made has been counted.
  local counted, reached
  if limited == 1 and changes then
    local fields = limit_fields(args[#args])
    local seen = redis.call('HMGET', keys[1], unpack(fields))
    counted, reached = limits_counted(args[#args], fields, seen, 0, caller_ms)
    if not counted then return { 'often', unpack(reached) } end
  end
  local tick
  if takes_tick == 1 and changes then tick = take_ticks(keys[home - tells_floor], 1, caller_ms) end
  -- H131: entries before what they are for, and none that an earlier sending has left.
  if entries > 0 and changes and not journal_first(keys[#keys], args, first_entry, first_cell - 1) then
    return { 'changed' }
  end
  if counted then redis.call('HSET', keys[1], unpack(counted)) end
  -- H29, H54: a change renews its stamp, also one that finds itself made.
  if fields > 0 then redis.call('HSET', keys[1], unpack(args, first_field, first_entry - 1)) end
  if not changes then return { 'ok', 0 } end
  set_cells(keys, args, first_cell, cells)
  change_members(keys, args, first_member, members, first_set, plan, tick)
  drop_cells(keys, args, first_cell, cells)
  if tells_floor == 0 then return { 'ok', 1 } end
  return { 'ok', 1, tick, floor_of(keys[home]), unpack(record, 2) }
end

register('account_delete', bucket_write, {})
-- H287: who fills a server is suspended while it is full. What else it sets is bounded (roles, invitations of groups).
register('account_set', bucket_write, { 'allow-oom' })
register('approve', bucket_write, {})
register('change', bucket_write, {})
register('document_set', bucket_write, {})
register('tie_set', bucket_write, {})
