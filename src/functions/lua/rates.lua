-- How often an account posts and is pulled stands in its record: pn, times that it was pulled; ra, "at posts pulls
-- posts_a_day pulls_a_day known": how many there were at a moment, how many a day before it, and how much of that is
-- known, from 0 to 1. It stays below 64 bytes, or the record would be no listpack any more.

local MEMORY_MS = 21600000 -- what is six hours old counts for a third

-- Brings an account's rates up to date, if what stands there is older than `every`, and tells what a policy wants to
-- know: {mode or '', told by hand or '', posts a day, pulls a day, followers, of these delivered to by the last
-- fan-out}.
local function note_rates(record, now, every, pulls)
  local seen = redis.call('HMGET', record, RECORD.MODE, RECORD.MODE_BY_HAND, RECORD.POSTS, RECORD.PULLS, RECORD.RATES,
    RECORD.RECIPIENTS, RECORD.AWAKE)
  local posts, pulled = tonumber(seen[3] or 0), tonumber(seen[4] or 0) + pulls
  local at, posts_then, pulled_then, by_post, by_pull, known =
    string.match(seen[5] or '', '^(%d+) (%d+) (%d+) (%S+) (%S+) (%S+)$')
  local fields = {}
  if pulls > 0 then fields = { RECORD.PULLS, pulled } end
  local is_new = not at
  if is_new then
    by_post, by_pull, known = 0, 0, 0
  elseif now - at >= every then
    local days, kept = (now - at) / 86400000, math.exp((at - now) / MEMORY_MS)
    by_post = by_post * kept + math.max(posts - posts_then, 0) / days * (1 - kept)
    by_pull = by_pull * kept + math.max(pulled - pulled_then, 0) / days * (1 - kept)
    known = 1 - (1 - known) * kept
    is_new = true
  elseif at - now >= every then
    -- Brought up to date at a time to come, by a clock that was ahead: from here on anew.
    is_new = true
  end
  if is_new then
    fields[#fields + 1] = RECORD.RATES
    fields[#fields + 1] = string.format('%.0f %.0f %.0f %.3g %.3g %.3g', now, posts, pulled, by_post, by_pull, known)
  end
  if #fields > 0 then redis.call('HSET', record, unpack(fields)) end
  -- What was not seen counts for nothing: an average over the time that was.
  local whole = math.max(tonumber(known), 1e-9)
  return { seen[1] or '', seen[2] or '', string.format('%.6g', by_post / whole), string.format('%.6g', by_pull / whole),
    seen[6] or '0', seen[7] or '0' }
end
