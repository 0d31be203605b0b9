/** Event-loop utilisation: the share of the time, from 0 to 1, in which this process' event loop was busy. */
import { performance } from "node:perf_hooks"

/**
 * Starts to measure. The returned function gives the utilisation since its previous call; called again within
 * `millisMin`, it repeats its previous result.
 */
export const measureUtilisation = (millisMin: number = 0): (() => number) => {
  let before = performance.eventLoopUtilization()
  let at = performance.now()
  let utilisation = 0
  return () => {
    const now = performance.now()
    if (now - at < millisMin) return utilisation
    utilisation = performance.eventLoopUtilization(before).utilization
    before = performance.eventLoopUtilization()
    at = now
    return utilisation
  }
}
