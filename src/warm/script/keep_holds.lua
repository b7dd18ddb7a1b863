-- Makes everything of active holds stand, or extends it, unless Redis has seen a newer version of the seat.
-- KEYS: the event's members; then for each seat: guard, bits, lock, hold, meta.
-- ARGV: the event; then for each seat the 17 that are named below.
-- A lock or key of another hold is overwritten only if that hold is older (ids ascend with time), because the store says
-- that the seat is this hold's; 'extend' touches nothing of another hold. For a 'new' hold a lock of the user's own goes in
-- any case: a second try of theirs, made elsewhere a moment later, fails and gives its lock back, and there would be none.
local function field(lock, name)
    return type(lock) == 'string' and string.match(lock, '"' .. name .. '"%s*:%s*"([%x%-]+)"') or nil
end

local function may_set(mode, holder, hold)
    if mode == 'extend' then
        return not holder or holder == hold
    end
    return not holder or holder <= hold
end

for seat = 0, (#KEYS - 1) / 5 - 1 do
    local key, a = 2 + 5 * seat, 2 + 17 * seat
    local guard, bits, lock, hold_key, meta = unpack(KEYS, key, key + 4)
    local mode, place, guard_place, version, bit, seat_id, hold, user, lock_value, lock_until, hold_value, until_ms,
        member, previous, until_text, created_text, source = unpack(ARGV, a, a + 16)
    local seen = redis.call('BITFIELD', guard, 'SET', 'u32', guard_place, version)[1]
    if seen > tonumber(version) then
        redis.call('BITFIELD', guard, 'SET', 'u32', guard_place, seen)
    else
        redis.call('BITFIELD', bits, 'SET', 'u1', place, bit)
        local found = redis.pcall('GET', lock)
        local own = mode == 'new' and field(found, 'user_id') == user
        if type(found) ~= 'table' and (own or may_set(mode, field(found, 'hold_id'), hold)) then
            redis.call('SET', lock, lock_value, 'PXAT', lock_until)
        end
        found = redis.pcall('GET', hold_key)
        if type(found) ~= 'table' and may_set(mode, found and string.sub(found, 1, #hold) or nil, hold) then
            redis.call('SET', hold_key, hold_value, 'PXAT', until_ms)
        end
        if previous ~= member then
            redis.call('ZREM', KEYS[1], previous)
        end
        redis.call('ZADD', KEYS[1], string.sub(until_ms, 1, -4), member)
        redis.call('HSET', meta, 'seat_id', seat_id, 'user_id', user, 'event_id', ARGV[1], 'held_until', until_text,
            'created_at', created_text, 'source', source, 'status', 'active')
        redis.call('PEXPIREAT', meta, until_ms)
    end
end
