/** The verdict on a goal: the measured figure beside its bound. */
export interface Verdict {
  readonly text: string
  readonly figure: number
  readonly unit: string
  readonly reached: boolean
}

export interface Bound {
  readonly text: string
  readonly unit: string
  /** The least figure that reaches the goal; the greatest one if `isMaximum`. */
  readonly bound: number
  readonly isMaximum?: boolean
}

export const verdictOf = ({ bound, isMaximum = false, text, unit }: Bound, figure: number): Verdict => {
  const space = unit === "×" ? " " : ""
  return {
    text: `${text} ${isMaximum ? "≤" : "≥"} ${bound}${space}${unit}`,
    figure,
    unit,
    reached: isMaximum ? figure <= bound : figure >= bound
  }
}
