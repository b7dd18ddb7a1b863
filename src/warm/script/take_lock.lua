-- Takes a lock over from the value it was seen to have, or takes it if it is free.
-- KEYS: the lock. ARGV: that value; the new one; when it dies (unix ms).
-- Gives what somebody else has put there meanwhile, or nothing: it is taken.
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then
    return found
end
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
return false
