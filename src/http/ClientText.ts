/**
 * Text that clients send and that is shown where it does not belong, in error messages, `param` and the log: the names of
 * parameters, ids and paths. Whoever mistakes one of them for the place of a card number finds no number in it.
 */
import { withoutCardNumbers } from "../domain/Cards.ts"

/** Fills in a message with what a client has sent. Numbers are the service's own. */
export const said = (parts: TemplateStringsArray, ...values: ReadonlyArray<string | number>): string =>
  String.raw({ raw: parts }, ...values.map((value) => (typeof value === "number" ? value : withoutCardNumbers(value))))

/** A path as it was sent, unless it holds a card number, percent-encoded perhaps. */
export const shownPath = (path: string): string => {
  const decoded = path.replaceAll(/%([2-7][0-9a-f])/giu, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  const shown = withoutCardNumbers(decoded)
  return shown === decoded ? path : shown
}
