-- What an account likes and bookmarks are local sets of its own: posts with their authors, 16 bytes, by ticks of its
-- bucket. The record's field `i`, 8 random bytes, is renewed with each change of them: so a copy of one that comes late
-- undoes nothing that is newer. They change by `tie_set` (write.lua).

-- tie_look: whether an account likes a post; if not, with a tick that is above all its likes of the past.
-- KEYS  record, clock, set, its piece (the set while it is small)
-- ARGV  piece (-1: small), depth, post and author, the caller's milliseconds
-- Reply {'tied', since}, {'not', tick} or {'tree', tree}
local function tie_look(keys, args)
  local piece, depth, member, caller_ms = unpack(args, 1, 4)
  local ok, answer = check_place(keys[3], tonumber(piece), tonumber(depth))
  if not ok then return answer end
  local since = is_there(keys[1]) and redis.call('ZSCORE', keys[4], member)
  if since then return { 'tied', since } end
  return { 'not', take_ticks(keys[2], 1, tonumber(caller_ms)) }
end

register('tie_look', tie_look, {})
