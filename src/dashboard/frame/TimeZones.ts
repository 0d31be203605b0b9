/**
 * Time zones of people (semantics dashboard.time_zone), by the tables of Node's ICU. A wall time is what clocks of the
 * zone show, as milliseconds that UTC would have then.
 */
import type { Person } from "../../domain/Person.ts"
import { Html } from "../../html/Html.ts"

export const UTC = "UTC"

/** Zones that ICU lists by names which IANA has replaced. It knows both names. */
const RENAMED: Readonly<Record<string, string>> = {
  "Africa/Asmera": "Africa/Asmara",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Catamarca": "America/Argentina/Catamarca",
  "America/Coral_Harbour": "America/Atikokan",
  "America/Cordoba": "America/Argentina/Cordoba",
  "America/Godthab": "America/Nuuk",
  "America/Indianapolis": "America/Indiana/Indianapolis",
  "America/Jujuy": "America/Argentina/Jujuy",
  "America/Louisville": "America/Kentucky/Louisville",
  "America/Mendoza": "America/Argentina/Mendoza",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Enderbury": "Pacific/Kanton",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk"
}

const listZones = (): ReadonlyArray<string> => {
  const names = Intl.supportedValuesOf("timeZone").map((name) => RENAMED[name] ?? name)
  return [UTC, ...[...new Set(names)].filter((name) => name !== UTC).toSorted()]
}

let known: ReadonlyArray<string> | undefined

/** The IANA names of all zones, with UTC first. */
export const timeZones = (): ReadonlyArray<string> => (known ??= listZones())

export const isTimeZone = (name: string): boolean => timeZones().includes(name)

/** The zone of a person's pages: UTC until one is set, or if this process does not know it. */
export const zoneOf = ({ time_zone }: Pick<Person, "time_zone">): string =>
  time_zone !== undefined && isTimeZone(time_zone) ? time_zone : UTC

/** Formats by zone; a format takes a millisecond to make. */
const formats = new Map<string, Intl.DateTimeFormat>()

const formatOf = (zone: string): Intl.DateTimeFormat => {
  let format = formats.get(zone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric"
    })
    formats.set(zone, format)
  }
  return format
}

/** Returns the wall time of an instant in milliseconds, without its fraction of a second. */
export const wallOf = (zone: string, millis: number): number => {
  if (zone === UTC) return millis - (((millis % 1000) + 1000) % 1000)
  const at: Record<string, number> = {}
  for (const { type, value } of formatOf(zone).formatToParts(millis)) at[type] = Number(value)
  const { day = 1, hour = 0, minute = 0, month = 1, second = 0, year = 1970 } = at
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

const HOUR_MILLIS = 3_600_000
const DAY_MILLIS = 24 * HOUR_MILLIS

/**
 * Returns the first instant at which clocks show a wall time. Where they skip it, the instant that has passed as long
 * since the skip began: for the midnight that a skip begins with, the end of the skip.
 */
export const instantOf = (zone: string, wall: number): number => {
  if (zone === UTC) return wall
  // No zone changes its offset twice within two days.
  const [before, after] = [wall - DAY_MILLIS, wall + DAY_MILLIS].map((near) => wall - (wallOf(zone, near) - near))
  return [before!, after!].toSorted((one, other) => one - other).find((at) => wallOf(zone, at) === wall) ?? before!
}

/** Returns the wall time at which an instant's day begins. */
export const dayOf = (zone: string, millis: number): number => {
  const wall = wallOf(zone, millis)
  return wall - (wall % DAY_MILLIS)
}

/** A time in Unix seconds as clocks of the zone show it: `2026-11-27 05:53:45`. */
export const wallText = (zone: string, seconds: number): string => {
  const iso = new Date(wallOf(zone, seconds * 1000)).toISOString()
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}`
}

/** The times that `time` of `Values.ts` writes. Texts of others are escaped, so they cannot be one. */
const TIMES = /(<time datetime="([^"<>]+)" title="[^"<>]+">)[^<]*(?=<\/time>)/g

/** Shows all times of a page in a zone, as the page's script shows them in the browser's zone. */
export const inZone = (page: Html, zone: string): Html =>
  zone === UTC
    ? page
    : new Html(
        page.text.replaceAll(TIMES, (_, tag: string, iso: string) => tag + wallText(zone, Date.parse(iso) / 1000))
      )
