-- Tickets: small values under hashes of secrets, each in the bucket of its hash, always with an end. '+', 8 random
-- bytes that change with each write, the value. One that was taken or dropped is '-', the same 8 bytes and, if it was
-- dropped, 8 more of who did that: it stays for as long as a copy of what put it there may still be on its way, which
-- would otherwise put it there again. What is put anew takes its place.

local NONCE_LEN = 8

-- Whether a ticket is there, and the random bytes of its last write.
local function ticket_at(key)
  local ticket = redis.call('GET', key) or ''
  return string.sub(ticket, 1, 1) == '+', string.sub(ticket, 2, 1 + NONCE_LEN), ticket
end

local function spend(key, nonce, by, ms) redis.call('SET', key, '-' .. nonce .. by, 'PX', ms) end

-- ticket_put: a new one.
-- KEYS  ticket
-- ARGV  8 random bytes and the value, for how many ms it lasts
-- Reply 1, also if it was put by an earlier sending of the same; 0: there is another one
local function ticket_put(keys, args)
  local ticket, lasts_ms = unpack(args, 1, 2)
  local is_there, nonce = ticket_at(keys[1])
  if nonce == string.sub(ticket, 1, NONCE_LEN) then return 1 end
  if is_there then return 0 end
  redis.call('SET', keys[1], '+' .. ticket, 'PX', lasts_ms)
  return 1
end

-- ticket_replace: another value, and another end.
-- KEYS  ticket
-- ARGV  its random bytes as the caller saw them, new ones and the value, for how many ms it lasts
-- Reply 1, also if an earlier sending of the same did that; 0: it is another one by now, or gone
local function ticket_replace(keys, args)
  local seen, ticket, lasts_ms = unpack(args, 1, 3)
  local is_there, nonce = ticket_at(keys[1])
  if is_there and nonce == string.sub(ticket, 1, NONCE_LEN) then return 1 end
  if not is_there or nonce ~= seen then return 0 end
  redis.call('SET', keys[1], '+' .. ticket, 'PX', lasts_ms)
  return 1
end

-- ticket_take: gives it, once.
-- KEYS  ticket
-- ARGV  for how many ms it is remembered that it was there
-- Reply its value; nil: there is none
local function ticket_take(keys, args)
  local is_there, nonce, ticket = ticket_at(keys[1])
  if not is_there then return false end
  spend(keys[1], nonce, '', args[1])
  return string.sub(ticket, 2 + NONCE_LEN)
end

-- ticket_drop: removes it.
-- KEYS  ticket
-- ARGV  its random bytes as the caller saw them, 8 of the caller, for how many ms it is remembered that it was there
-- Reply 1, also if an earlier sending of the same did that; 0: it is another one by now, or gone
local function ticket_drop(keys, args)
  local seen, by, spent_ms = unpack(args, 1, 3)
  local is_there, nonce, ticket = ticket_at(keys[1])
  if ticket == '-' .. seen .. by then return 1 end
  if not is_there or nonce ~= seen then return 0 end
  spend(keys[1], nonce, by, spent_ms)
  return 1
end

register('ticket_put', ticket_put, {})
register('ticket_replace', ticket_replace, {})
register('ticket_take', ticket_take, { 'allow-oom' })
register('ticket_drop', ticket_drop, { 'allow-oom' })
