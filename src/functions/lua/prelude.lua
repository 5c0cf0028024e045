-- Tideline's server-side functions. Each touches the keys of one hash tag only, validates everything before it
-- writes, and writes in an order in which every prefix is harmless. docs/functions.md lists them.
-- While the library is loaded neither `redis.call` nor `string` exists: constants are literals.
-- RECORD and CREDENTIALS are no tables: before a server sees this code the letters of `fields.rs` stand in the place of
-- their fields' names.

-- What an account's state `s` says; none: it has no record. `account.rs` names the letters.
local function is_active(state) return state == 'a' or state == 'l' end
local function is_unconfirmed(state) return state == 'u' end
local function has_gone(state) return not state or state == 'd' end
local function is_known(state) return not has_gone(state) and not is_unconfirmed(state) end

-- Whether an account is there: neither deleted, nor still being registered. Nothing is written for one that isn't.
local function is_there(record) return is_known(redis.call('HGET', record, RECORD.STATE)) end

-- What a post of this release begins with, and how many bytes of it stand at fixed places.
local POST_FORMAT, POST_HEADER = 1, 84

-- The fixed part of what stands under a post's key: '' if nothing does, nil if this release can't read it. Nothing is
-- decided, nor written, by such a one (H93).
local function post_header(post)
  local header = redis.call('GETRANGE', post, 0, POST_HEADER - 1)
  if #header == 0 or #header == POST_HEADER and string.byte(header) == POST_FORMAT then return header end
end

-- Whether a post is a group's or a chat's and a member wrote it: a flag of its header.
local BY_MEMBER = 8
local function is_by_member(header) return math.floor(string.byte(header, 4) / BY_MEMBER) % 2 == 1 end

-- Says that something was taken off a list of a bucket: what is on its way to one of them is looked at anew (H126).
local function removal_told(key, caller_ms)
  local last = tonumber(redis.call('GET', key) or 0)
  redis.call('SET', key, string.format('%.0f', math.max(last + 1, tonumber(caller_ms))))
end

local function register(name, callback, flags)
  redis.register_function { function_name = '@LIBRARY@_' .. name, callback = callback, flags = flags }
end
