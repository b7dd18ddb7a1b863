-- Which holds have all of their keys?
-- KEYS: for each hold: hold, meta. ARGV: for each its id.
-- Gives a number for each: 1, or 0 if one is missing or another's.
local whole = {}
for i = 1, #ARGV do
    local found = redis.pcall('GET', KEYS[2 * i - 1])
    local is_own = type(found) == 'string' and string.sub(found, 1, #ARGV[i]) == ARGV[i]
    whole[i] = is_own and redis.call('EXISTS', KEYS[2 * i]) or 0
end
return whole
