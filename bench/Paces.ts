/** Durations of the bench's parts: usual ones, with `--full`, and with `--seconds`. */
import type { ClusterPace } from "./cluster/ClusterBench.ts"
import type { ComparisonPace } from "./compare/Comparison.ts"
import type { DashboardPace } from "./dashboard/DashboardBench.ts"
import type { GrowthPace } from "./growth/GrowthBench.ts"
import type { LivePace } from "./live/LiveBench.ts"
import type { OverloadPace } from "./overload/OverloadBench.ts"
import type { PacedPace } from "./paced/Paced.ts"
import type { StartPace } from "./start/StartBench.ts"
import type { Pace } from "./Suite.ts"
import type { WebhookPace } from "./webhooks/WebhookBench.ts"

interface Paces {
  readonly api: Pace
  readonly paced: PacedPace
  readonly webhooks: WebhookPace
  readonly overload: OverloadPace
  readonly live: LivePace
  readonly cluster: ClusterPace
  readonly growth: GrowthPace
  readonly dashboard: DashboardPace
  readonly start: StartPace
  readonly comparison: ComparisonPace
}

const RETRIES = { deliveries: 10_000, createsPerSecond: 200, watchedSeconds: 6 }

const usual: Paces = {
  // About four minutes.
  api: { firstWarmUpSeconds: 7, warmUpSeconds: 0.9, secondsPerRound: 0.9, rounds: 3 },
  // Two minutes.
  paced: { warmUpSeconds: 2, secondsPerMaximum: 2, secondsPerRound: 5, rounds: 5 },
  // A minute and a half; with ten endpoints, most of it waits for deliveries.
  webhooks: {
    warmUpSeconds: 5,
    secondsPerMeasure: 4,
    secondsPerFanOutRound: 0.8,
    fanOutRounds: 5,
    retries: RETRIES
  },
  // Three minutes.
  overload: { warmUpSeconds: 7, secondsPerQuiet: 1, secondsPerPeak: 2, secondsPerStep: 4, watchedSeconds: 2.5 },
  // Two minutes and a half; most of it waits for a gateway.
  live: { warmUpSeconds: 6, secondsSaturated: 6, secondsPaced: 12, secondsBeside: 3, secondsGone: 45 },
  // Twelve minutes, half of them for warming up.
  cluster: { warmUpSeconds: 7, secondsPerRound: 2, rounds: 4, starts: 4 },
  // Eight minutes, half of them for making the objects.
  growth: {
    objects: 2_000_000,
    accounts: 1,
    warmUpSeconds: 6,
    secondsPerRound: 1.5,
    rounds: 6,
    starts: 3,
    restarts: 3,
    coldRequests: 3000
  },
  // Ten minutes, half of them for making the payments.
  dashboard: {
    payments: 1_000_000,
    loadsPerPage: 40,
    openPages: 500,
    warmUpSeconds: 6,
    secondsPerRound: 4,
    rounds: 4,
    logStarts: 4
  },
  // A minute and a half per scenario. Starts count more than rounds: compiled code differs from start to start.
  // A minute.
  start: { rounds: 5 },
  comparison: { firstWarmUpSeconds: 6, warmUpSeconds: 2, secondsPerRound: 0.9, rounds: 4, starts: 6 }
}

const full: Paces = {
  api: { firstWarmUpSeconds: 10, warmUpSeconds: 4, secondsPerRound: 6, rounds: 5 },
  paced: { warmUpSeconds: 5, secondsPerMaximum: 4, secondsPerRound: 20, rounds: 7 },
  webhooks: {
    warmUpSeconds: 10,
    secondsPerMeasure: 15,
    secondsPerFanOutRound: 2,
    fanOutRounds: 5,
    retries: { ...RETRIES, watchedSeconds: 15 }
  },
  overload: { warmUpSeconds: 10, secondsPerQuiet: 3, secondsPerPeak: 5, secondsPerStep: 15, watchedSeconds: 5 },
  live: { ...usual.live, warmUpSeconds: 10, secondsSaturated: 15, secondsPaced: 60, secondsBeside: 5 },
  cluster: { ...usual.cluster, secondsPerRound: 4, rounds: 6, starts: 8 },
  growth: { ...usual.growth, objects: 10_000_000, accounts: 1000, secondsPerRound: 3, rounds: 8 },
  dashboard: { ...usual.dashboard, loadsPerPage: 300, secondsPerRound: 8, rounds: 8, logStarts: 8 },
  start: { rounds: 15 },
  comparison: { ...usual.comparison, secondsPerRound: 2, rounds: 5, starts: 12 }
}

/** Shortens the parts for a trial; fewer retries wait. */
const shortened = (paces: Paces, seconds: number): Paces => {
  const { api, cluster, comparison, dashboard, growth, live, overload, paced } = paces
  const rounds = (usual: number) => Math.min(usual, 6 * seconds)
  return {
    api: { ...api, secondsPerRound: seconds },
    paced: {
      ...paced,
      warmUpSeconds: rounds(paced.warmUpSeconds),
      secondsPerMaximum: Math.min(paced.secondsPerMaximum, seconds),
      secondsPerRound: seconds
    },
    webhooks: {
      warmUpSeconds: seconds,
      secondsPerMeasure: seconds,
      secondsPerFanOutRound: seconds / 5,
      fanOutRounds: 1,
      retries: {
        ...RETRIES,
        deliveries: Math.ceil(RETRIES.deliveries * Math.min(1, seconds / 4)),
        watchedSeconds: seconds
      }
    },
    overload: {
      ...overload,
      warmUpSeconds: rounds(overload.warmUpSeconds),
      secondsPerQuiet: Math.min(overload.secondsPerQuiet, seconds),
      secondsPerPeak: Math.min(overload.secondsPerPeak, seconds),
      secondsPerStep: seconds
    },
    live: {
      warmUpSeconds: rounds(live.warmUpSeconds),
      secondsSaturated: seconds,
      secondsPaced: seconds,
      // Both measures end before the gateway answers.
      secondsBeside: Math.min(live.secondsBeside, seconds),
      secondsGone: live.secondsGone
    },
    cluster: { warmUpSeconds: rounds(cluster.warmUpSeconds), secondsPerRound: seconds, rounds: 2, starts: 1 },
    growth: { ...growth, warmUpSeconds: rounds(growth.warmUpSeconds), secondsPerRound: seconds },
    dashboard: {
      ...dashboard,
      warmUpSeconds: rounds(dashboard.warmUpSeconds),
      secondsPerRound: seconds,
      rounds: 2,
      logStarts: 1
    },
    start: { rounds: 1 },
    comparison: {
      ...comparison,
      secondsPerRound: seconds,
      warmUpSeconds: Math.min(comparison.warmUpSeconds, 2 * seconds),
      firstWarmUpSeconds: rounds(comparison.firstWarmUpSeconds)
    }
  }
}

/** Returns the usual paces if `seconds` is undefined. */
export const pacesOf = (isFull: boolean, seconds: number | undefined): Paces => {
  const paces = isFull ? full : usual
  return seconds === undefined ? paces : shortened(paces, seconds)
}
