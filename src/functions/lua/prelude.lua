-- Tideline's server-side functions. Each touches the keys of one hash tag only, validates everything before it
-- writes, and writes in an order in which every prefix is harmless. docs/functions.md lists them.
-- While the library is loaded neither `redis.call` nor `string` exists: constants are literals.

local function register(name, callback, flags)
  redis.register_function { function_name = '@LIBRARY@_' .. name, callback = callback, flags = flags }
end
