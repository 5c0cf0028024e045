-- Registration: names and e-mail addresses that one account only has. A claim is a string in the bucket of its hash:
-- account (8 bytes), attempt (8) that took it. An account's credentials are a hash in its own bucket: c its claims (17
-- bytes each), e e-mail address, h password's hash, k token of its sign-up, v the attempt that last changed them; until
-- it is registered s the state that it is to have then, if that isn't active. While
-- an attempt is under way: n the attempt, t when it began (ms), w the claims that the account is to have; once it has
-- them, u the login that the record is to show with them, if that is another one. An account that is being registered
-- has the state 'u'; one that is there has claims of its own, and perhaps an attempt to change them.

local CLAIM_LEN = 17

local function names_claim(claims, claim)
  for at = 1, #(claims or ''), CLAIM_LEN do
    if string.sub(claims, at, at + CLAIM_LEN - 1) == claim then return true end
  end
  return false
end

-- How old an attempt is, in ms. Times are the callers', which are the median of the primaries' clocks: this server's
-- may have been set forward or back since (H83). One that begins at a time to come began nobody knows when.
local function age_of(began, now) return math.abs(tonumber(now) - (tonumber(began or '') or 0)) end

-- Whether an attempt is so old that it may be ended; one that nobody knows anything about is.
local function is_over(began, now, patience) return age_of(began, now) >= tonumber(patience) end

-- Ends an attempt whose claims are the account's: the record says so, too. What has begun with that may have failed
-- (H132).
local function finish(keys, login)
  if (login or '') ~= '' then redis.call('HSET', keys[1], RECORD.LOGIN, login) end
  redis.call('HDEL', keys[2], CREDENTIALS.ATTEMPT, CREDENTIALS.BEGUN_AT, CREDENTIALS.WANTED, CREDENTIALS.LOGIN_TO_SHOW)
end

-- signup_begin: a new account, unconfirmed, with the claims that it is to have.
-- KEYS  record, credentials, profile
-- ARGV  attempt, the caller's milliseconds, claims, profile, how many fields of the record, field, value, ..., then
--       credentials' field, value, ...
-- Reply {'ok'}, or {'there', state}: there is one already
local function signup_begin(keys, args)
  local attempt, caller_ms, claims, profile, field_count = unpack(args, 1, 5)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if state then return { 'there', state } end
  local fields = 2 * tonumber(field_count)
  redis.call('DEL', keys[2])
  redis.call('HSET', keys[1], RECORD.STATE, 'u', unpack(args, 6, 5 + fields))
  redis.call('SET', keys[3], profile)
  -- H97: last, for whoever finds its own attempt there goes on with it. Without an attempt anybody may begin anew at
  -- once.
  redis.call('HSET', keys[2], CREDENTIALS.ATTEMPT, attempt, CREDENTIALS.BEGUN_AT, caller_ms, CREDENTIALS.WANTED, claims,
    unpack(args, 6 + fields))
  return { 'ok' }
end

-- claims_begin: an account is to have other claims.
-- KEYS  record, credentials
-- ARGV  attempt, the caller's milliseconds, patience in ms, the last attempt that the caller saw ('' none), claims
-- Reply {'ok'}; {'gone'}; {'stamp'}: they have changed since; {'busy'}: another attempt is under way
local function claims_begin(keys, args)
  local attempt, caller_ms, patience, last, claims = unpack(args, 1, 5)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if not is_known(state) then return { 'gone' } end
  local seen = redis.call('HMGET', keys[2], CREDENTIALS.LAST_ATTEMPT, CREDENTIALS.ATTEMPT, CREDENTIALS.BEGUN_AT,
    CREDENTIALS.LOGIN_TO_SHOW)
  if (seen[1] or '') ~= last then return { 'stamp' } end
  if seen[2] and not is_over(seen[3], caller_ms, patience) then return { 'busy' } end
  if seen[2] and seen[2] == seen[1] then finish(keys, seen[4]) end
  redis.call('HSET', keys[2], CREDENTIALS.ATTEMPT, attempt, CREDENTIALS.BEGUN_AT, caller_ms, CREDENTIALS.WANTED, claims)
  return { 'ok' }
end

-- claims_settle: all claims of an attempt are taken: they are the account's.
-- KEYS  record, credentials
-- ARGV  attempt, new graph stamp, how many fields of the record, field, value, ..., then credentials' field, value, ...
-- Reply {'ok'}, or {'gone'}: the attempt has been ended, or the account is deleted
local function claims_settle(keys, args)
  local attempt, graph, field_count, _, login = unpack(args, 1, 5)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if has_gone(state) then return { 'gone' } end
  local seen = redis.call('HMGET', keys[2], CREDENTIALS.LAST_ATTEMPT, CREDENTIALS.ATTEMPT, CREDENTIALS.WANTED,
    CREDENTIALS.BEGINS_AS)
  if seen[2] ~= attempt then
    if seen[1] == attempt then return { 'ok' } end
    return { 'gone' }
  end
  -- H115: a call before this one may have come to any of these lines. Until the last one nobody else changes names.
  local fields = 2 * tonumber(field_count)
  if seen[1] ~= attempt or is_unconfirmed(state) then
    redis.call('HSET', keys[2], CREDENTIALS.LAST_ATTEMPT, attempt, CREDENTIALS.CLAIMS, seen[3],
      CREDENTIALS.LOGIN_TO_SHOW, fields > 0 and login or '', unpack(args, 4 + fields))
  end
  -- H205: what it is from then on is written with that it is there.
  local is = is_unconfirmed(state) and (seen[4] or 'a') or state
  redis.call('HSET', keys[1], RECORD.STATE, is, RECORD.GRAPH_STAMP, graph, unpack(args, 4, 3 + fields))
  redis.call('HDEL', keys[2], CREDENTIALS.ATTEMPT, CREDENTIALS.BEGUN_AT, CREDENTIALS.WANTED, CREDENTIALS.LOGIN_TO_SHOW,
    CREDENTIALS.BEGINS_AS)
  return { 'ok' }
end

-- claims_void: ends an attempt, and with it an account that was to be registered.
-- KEYS  record, credentials, profile
-- ARGV  attempt ('' if none is known of an unconfirmed account), the caller's milliseconds, patience in ms
-- Reply 1, or 0: it has been settled or ended, or isn't old enough
local function claims_void(keys, args)
  local attempt, caller_ms, patience = unpack(args, 1, 3)
  local seen = redis.call('HMGET', keys[2], CREDENTIALS.ATTEMPT, CREDENTIALS.BEGUN_AT, CREDENTIALS.LAST_ATTEMPT,
    CREDENTIALS.LOGIN_TO_SHOW)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if (seen[1] or '') ~= attempt or not is_over(seen[2], caller_ms, patience) then return 0 end
  if is_unconfirmed(state) then
    redis.call('UNLINK', unpack(keys))
    return 1
  end
  if not seen[1] then return 0 end
  if seen[3] == seen[1] then
    finish(keys, seen[4])
    return 0
  end
  redis.call('HDEL', keys[2], CREDENTIALS.ATTEMPT, CREDENTIALS.BEGUN_AT, CREDENTIALS.WANTED)
  return 1
end

-- claim_holder: whether an account has a claim, or is to have it.
-- KEYS  record, credentials
-- ARGV  claim, the caller's milliseconds
-- Reply {'held'}; {'wanted', attempt, for how many ms it has been under way}; {'free'}
local function claim_holder(keys, args)
  local claim, caller_ms = unpack(args, 1, 2)
  local state = redis.call('HGET', keys[1], RECORD.STATE)
  if has_gone(state) then return { 'free' } end
  local seen = redis.call('HMGET', keys[2], CREDENTIALS.CLAIMS, CREDENTIALS.WANTED, CREDENTIALS.ATTEMPT,
    CREDENTIALS.BEGUN_AT)
  if not is_unconfirmed(state) and names_claim(seen[1], claim) then return { 'held' } end
  if not names_claim(seen[2], claim) then return { 'free' } end
  return { 'wanted', seen[3] or '', age_of(seen[4], caller_ms) }
end

-- claim_take: takes a claim, if it is what the caller has seen.
-- KEYS  claim
-- ARGV  what it was ('' free), what it becomes
-- Reply {'ok'}, or {'taken', what it is}
local function claim_take(keys, args)
  local before, after = unpack(args, 1, 2)
  local now = redis.call('GET', keys[1]) or ''
  if now == after then return { 'ok' } end
  if now ~= before then return { 'taken', now } end
  redis.call('SET', keys[1], after)
  return { 'ok' }
end

-- credentials_set: changes what is secret of an account.
-- KEYS  record, credentials
-- ARGV  the last attempt that the caller saw ('' none), a new one, field, value, ...
-- Reply {'ok'}, {'gone'}, {'stamp'}: they have changed since
local function credentials_set(keys, args)
  local last, attempt = unpack(args, 1, 2)
  if not is_there(keys[1]) then return { 'gone' } end
  local seen = redis.call('HGET', keys[2], CREDENTIALS.LAST_ATTEMPT) or ''
  if seen == attempt then return { 'ok' } end
  if seen ~= last then return { 'stamp' } end
  redis.call('HSET', keys[2], CREDENTIALS.LAST_ATTEMPT, attempt, unpack(args, 3))
  return { 'ok' }
end

-- profile_set: writes a profile, if it is what the caller has seen. It begins with 8 random bytes.
-- KEYS  record, profile
-- ARGV  its first 8 bytes that were seen ('' none), profile
-- Reply {'ok'}, {'gone'}, {'stamp'}: it has changed since
local function profile_set(keys, args)
  local before, profile = unpack(args, 1, 2)
  if not is_there(keys[1]) then return { 'gone' } end
  if redis.call('GETRANGE', keys[2], 0, 7) ~= before then return { 'stamp' } end
  redis.call('SET', keys[2], profile)
  return { 'ok' }
end

register('signup_begin', signup_begin, {})
register('claims_begin', claims_begin, {})
register('claims_settle', claims_settle, {})
register('claims_void', claims_void, { 'allow-oom' })
register('claim_holder', claim_holder, { 'no-writes' })
register('claim_take', claim_take, {})
register('credentials_set', credentials_set, {})
register('profile_set', profile_set, {})
