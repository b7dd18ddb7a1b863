-- Sets seats' bits, block by block, unless Redis has seen a newer version of the seat.
-- KEYS: guard and bits of each block.
-- ARGV: for each block how many seats, then for each of them: its bit's place, its version's place, version, bit.
-- Always by BITFIELD: there is a server whose SETBIT counts the bits of a byte from its other end (Kvrocks).
-- The versions are put in place at once, which tells those that were there; a newer one is put back. Nobody can look
-- between, and it saves a command a block. A seat that is alone in its block, as most are when a sale begins, is
-- spared the tables.
local call, at = redis.call, 1
for key = 1, #KEYS, 2 do
    local guard, bits, count = KEYS[key], KEYS[key + 1], tonumber(ARGV[at])
    if count == 1 then
        local seen = call('BITFIELD', guard, 'SET', 'u32', ARGV[at + 2], ARGV[at + 3])[1]
        if seen > tonumber(ARGV[at + 3]) then
            call('BITFIELD', guard, 'SET', 'u32', ARGV[at + 2], seen)
        else
            call('BITFIELD', bits, 'SET', 'u1', ARGV[at + 1], ARGV[at + 4])
        end
    else
        local versions, argument = {}, 1
        for seat = at, at + 4 * (count - 1), 4 do
            versions[argument], versions[argument + 1] = 'SET', 'u32'
            versions[argument + 2], versions[argument + 3] = ARGV[seat + 2], ARGV[seat + 3]
            argument = argument + 4
        end
        local all = call('BITFIELD', guard, unpack(versions))
        local set, back = {}, {}
        for i = 1, count do
            local seat, seen = at + 4 * (i - 1), all[i]
            local to, place, value, type = set, ARGV[seat + 1], ARGV[seat + 4], 'u1'
            if seen > tonumber(ARGV[seat + 3]) then
                to, place, value, type = back, ARGV[seat + 2], seen, 'u32'
            end
            argument = #to
            to[argument + 1], to[argument + 2], to[argument + 3], to[argument + 4] = 'SET', type, place, value
        end
        if #back > 0 then
            call('BITFIELD', guard, unpack(back))
        end
        if #set > 0 then
            call('BITFIELD', bits, unpack(set))
        end
    end
    at = at + 1 + 4 * count
end
