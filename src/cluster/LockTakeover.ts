/**
 * Decides when a runner that has acquired a partition's lock may serve the partition.
 *
 * Having the lock is not enough: the previous owner may still serve the partition for up to `CONFIRMED_MILLIS` after
 * its last confirmation (`Placement.ts`). Before a runner releases a lock, it clears the partition's row in the table
 * `partitions`; when it notices that its session is gone, it clears all its rows. So if the row still names another
 * runner, that runner has lost the lock without releasing it:
 *
 * - If connections to its address are refused, it is gone, and the partition is taken at once, as after a kill.
 * - If it answers, it will notice: the partition is taken when it has cleared the row. A runner cut off from Postgres
 *   cannot do that, so the partition is taken when its confirmation has expired: `CONFIRMED_MILLIS` after its last
 *   heartbeat was first seen here. With each confirmation it writes a heartbeat, over the session of its locks; the
 *   read of the table after the lock was acquired sees the last one.
 * - If it does not answer, or another program listens there, it may be frozen or cut off, and the heartbeat's time in
 *   the database counts.
 *
 * Postgres ends a session after six seconds without a sign of life, so a frozen runner causes no second wait.
 *
 * In any case the partition is taken `CONFIRMED_MILLIS` after its lock, because nothing can have been confirmed since.
 */
import { Effect } from "effect"
import { CONFIRMED_MILLIS, type Partition } from "../engine/process/Placement.ts"
import type { Health } from "./Health.ts"
import type { PartitionTable } from "./PartitionTable.ts"

/** Interval at which the table and the other runner are checked again without a notification. */
const AGAIN_MILLIS = 100

/** Waits until no other runner can serve a partition whose lock this one has. */
export const awaitVacancy = (
  { news, ownerOf, refresh }: Pick<PartitionTable, "news" | "ownerOf" | "refresh">,
  { presenceOf }: Pick<Health, "presenceOf">,
  partition: Partition
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const until = performance.now() + CONFIRMED_MILLIS
    while (performance.now() < until) {
      yield* Effect.timeoutOption(refresh, until - performance.now())
      const owner = ownerOf(partition)
      if (owner === null) return
      if (owner !== undefined) {
        const presence = yield* presenceOf(owner.url)
        const expiresAt =
          presence === "unknown" ? Math.min(owner.expiresAt, owner.surelyExpiresAt) : owner.surelyExpiresAt
        if (presence === "refused" || performance.now() >= expiresAt) return
      }
      yield* Effect.timeoutOption(news, AGAIN_MILLIS)
    }
  })
