-- Takes away what belongs to holds that have ended, and nothing that belongs to another.
-- KEYS: the event's members; then for each hold: lock, hold, meta.
-- ARGV: for each hold: its id; its member.
local members = {'ZREM', KEYS[1]}
for i = 1, #ARGV, 2 do
    local hold, member, key = ARGV[i], ARGV[i + 1], 2 + 3 * (i - 1) / 2
    local gone = {'DEL', KEYS[key + 2]}
    local found = redis.pcall('GET', KEYS[key])
    if type(found) == 'string' and string.match(found, '"hold_id"%s*:%s*"([%x%-]+)"') == hold then
        gone[#gone + 1] = KEYS[key]
    end
    found = redis.pcall('GET', KEYS[key + 1])
    if type(found) == 'string' and string.sub(found, 1, #hold) == hold then
        gone[#gone + 1] = KEYS[key + 1]
    end
    redis.call(unpack(gone))
    members[#members + 1] = member
end
redis.call(unpack(members))
