/**
 * A clock that all processes of this machine share: what one of them notes can be subtracted from what another one
 * does. It has nothing to do with the time of day, and no step of that moves it.
 */

/** Microseconds since a moment that is the same for every process, until the machine is restarted. */
export const nowMicros = (): number => Number(process.hrtime.bigint()) / 1000
