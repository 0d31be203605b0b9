/**
 * A clock that all processes of this machine share, so that times of different processes can be subtracted. Changes of
 * the wall clock do not move it.
 */

/** Microseconds since a moment that is the same for every process, until the machine is restarted. */
export const nowMicros = (): number => Number(process.hrtime.bigint()) / 1000
