/** Redis: ioredis or node-redis, one server or a Cluster. Read docs/engines/redis.md first. */

export type {
  IoredisClient,
  NodeRedisClient,
  NodeRedisCluster,
  RedisArgument,
  RedisClient,
  RedisReply,
  RedisStoreOptions,
} from './redis-database.ts'
export { RedisFenceStore } from './redis-fence-store.ts'
export { RedisLeaseStore } from './redis-lease-store.ts'
export { RedisReplyError, type RedisTransaction } from './redis-transaction.ts'
