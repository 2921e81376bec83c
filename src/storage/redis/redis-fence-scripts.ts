/** What a fence store does at the server, each in one atomic step. */

import { script } from './redis-connection.ts'
import { ENTER } from './redis-schema.ts'

/** A digest that tells whether a read still has the same reply. */
const DIGEST = `
local function digest(reply)
  return redis.sha1hex(cmsgpack.pack(reply))
end
`

/**
 * KEYS: version, fence, in flight, unknown, applied. ARGV: operation or '', whether to count.
 * All of it is of one moment, the clock included.
 */
export const VIEW = script(`${ENTER}
local own = {}
if ARGV[1] ~= '' then
  own = { redis.call('HGET', KEYS[4], ARGV[1]), redis.call('HGET', KEYS[5], ARGV[1]) }
end
return {
  clock,
  redis.call('HMGET', KEYS[2], 'generation', 'holder', 'lease', 'sealed', 'version'),
  redis.call('HGETALL', KEYS[3]),
  own,
  ARGV[2] == '1' and redis.call('HVALS', KEYS[4]) or {},
}`)

/** KEYS: version. ARGV: a command. The server refuses one that would write. */
export const READ = script(
  `${ENTER}${DIGEST}
local reply = redis.pcall(unpack(ARGV))
if type(reply) == 'table' and reply.err then return { 'error', reply.err } end
return { digest(reply), reply }`,
  ' flags=no-writes',
)

/**
 * KEYS: those of VIEW, the index of what is unsettled, the index of what is applied. ARGV: see
 * `commit` in redis-fence-statements.ts.
 *
 * Nothing is changed unless the job is as it was seen, it is not too late, and all reads hold.
 * Then the fence, then the record as *unknown*, then the commands, then the record as applied:
 * Redis undoes nothing where a command fails, so what stands there must be true at every step.
 */
export const COMMIT = script(`${ENTER}${DIGEST}
local seen, version, deadline, now, operation, member = unpack(ARGV, 1, 6)
local action, status, generation, lasts, record, begun = unpack(ARGV, 11, 16)
if now == '' then now = clock end
local at = 16

local function take()
  at = at + 1
  return ARGV[at]
end

local function run()
  local command = {}
  for i = 1, tonumber(take()) do command[i] = take() end
  return redis.pcall(unpack(command))
end

local homes = { in_flight = KEYS[3], unknown = KEYS[4], applied = KEYS[5] }

local function forget()
  redis.call('HDEL', KEYS[3], operation)
  redis.call('HDEL', KEYS[4], operation)
  redis.call('ZREM', KEYS[6], member)
end

local function put(status, text)
  forget()
  if status == 'in_flight' then text = string.format('%.0f ', now + lasts) .. text end
  redis.call('HSET', homes[status], operation, text)
  if status == 'applied' then
    redis.call('ZADD', KEYS[7], string.format('%.0f', now), member)
  else
    redis.call('ZADD', KEYS[6], generation, member)
  end
end

if (redis.call('HGET', KEYS[2], 'version') or '') ~= seen then return { 'changed' } end
if clock >= tonumber(deadline) then return { 'changed' } end
for _ = 1, tonumber(take()) do
  local known = take()
  if digest(run()) ~= known then return { 'changed' } end
end

redis.call('HSET', KEYS[2], 'version', version)
if ARGV[7] ~= '' then
  redis.call('HSET', KEYS[2], 'generation', ARGV[7], 'holder', ARGV[8], 'lease', ARGV[9],
    'sealed', ARGV[10])
end
if action == 'put' then put(status, record) end
if action == 'delete' then forget() end
if action ~= 'apply' then return { 'done' } end

local recorded = operation ~= ''
if recorded then put('unknown', begun) end
for i = 1, tonumber(take()) do
  local reply = run()
  if type(reply) == 'table' and reply.err then
    if recorded and i == 1 then forget() end
    return { 'failed', i, reply.err }
  end
end
if recorded then put('applied', record) end
return { 'done' }`)

/** KEYS: version, index of what is unsettled. ARGV: from, to. */
export const UNSETTLED = script(`${ENTER}
return { clock, redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[2], 'WITHSCORES') }`)

/** KEYS: version, then in flight and unknown of each. ARGV: the operations. */
export const STATUS = script(`${ENTER}
local found = {}
for i, operation in ipairs(ARGV) do
  found[i] = {
    redis.call('HGET', KEYS[2 * i], operation),
    redis.call('HEXISTS', KEYS[2 * i + 1], operation),
  }
end
return found`)

/** KEYS: version, index of what is applied. ARGV: now or '', age, offset, count. */
export const APPLIED = script(`${ENTER}
local now = ARGV[1] == '' and clock or ARGV[1]
local latest = string.format('%.0f', now - ARGV[2])
local page = { 'ZRANGE', KEYS[2], '-inf', latest, 'BYSCORE', 'LIMIT', ARGV[3], ARGV[4] }
return { latest, redis.call(unpack(page)) }`)

/**
 * KEYS: version, index of what is applied, then fence and applied of each. ARGV: until when,
 * whether only of sealed jobs, then member and operation of each. Looks again before it deletes.
 */
export const PRUNE = script(`${ENTER}
local pruned = 0
for i = 1, (#KEYS - 2) / 2 do
  local fence, applied = KEYS[2 * i + 1], KEYS[2 * i + 2]
  local member, operation = ARGV[2 * i + 1], ARGV[2 * i + 2]
  local score = redis.call('ZSCORE', KEYS[2], member)
  local due = score and tonumber(score) <= tonumber(ARGV[1])
  if due and (ARGV[2] == '' or redis.call('HGET', fence, 'sealed') == '1') then
    redis.call('HDEL', applied, operation)
    redis.call('ZREM', KEYS[2], member)
    pruned = pruned + 1
  end
end
return pruned`)
