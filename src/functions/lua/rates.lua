-- How often an account posts and is pulled stands in its record: pn, times that it was pulled; ra, "since at posts pulls
-- posts_a_day pulls_a_day": since when that is counted, how many there were at a moment, and how many a day before it.

local MEMORY_MS = 21600000 -- what is six hours old counts for a third

-- Brings an account's rates up to date, if what stands there is older than `every`, and tells what a policy wants to
-- know: {mode or '', told by hand or '', posts a day, pulls a day, followers, of these delivered to by the last fan-out}.
local function note_rates(record, now, every, pulls)
  local seen = redis.call('HMGET', record, 'm', 'mf', 'p', 'pn', 'ra', 'nF', 'fd')
  local posts, pulled = tonumber(seen[3] or 0), tonumber(seen[4] or 0) + pulls
  local since, at, posts_then, pulled_then, by_post, by_pull =
    string.match(seen[5] or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
  local fields = {}
  if pulls > 0 then fields = { 'pn', pulled } end
  if not since then
    since, at, by_post, by_pull, posts_then = now, now, 0, 0, nil
  elseif now - at >= every then
    local days, kept = (now - at) / 86400000, math.exp((at - now) / MEMORY_MS)
    by_post = by_post * kept + math.max(posts - posts_then, 0) / days * (1 - kept)
    by_pull = by_pull * kept + math.max(pulled - pulled_then, 0) / days * (1 - kept)
    at, posts_then = now, nil
  end
  if not posts_then then
    fields[#fields + 1] = 'ra'
    fields[#fields + 1] = string.format('%.0f %.0f %.0f %.0f %.6g %.6g', since, at, posts, pulled, by_post, by_pull)
  end
  if #fields > 0 then redis.call('HSET', record, unpack(fields)) end
  -- What was not seen yet counts for nothing: an average over the time that was.
  local known = 1 - math.exp((since - at) / MEMORY_MS)
  if known <= 0 then known = 1 end
  return { seen[1] or '', seen[2] or '', string.format('%.6g', by_post / known), string.format('%.6g', by_pull / known),
    seen[6] or '0', seen[7] or '0' }
end
