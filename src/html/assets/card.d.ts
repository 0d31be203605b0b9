/** Types of `card.js`, which runs in the browser and on the server. */

export function readNumber(text: string): string | undefined
export function readCode(text: string): string | undefined
export function readExpiry(text: string): { readonly month: number; readonly year: number } | undefined
export function shapeNumber(text: string, groups: ReadonlyArray<number>): string
export function shapeCode(text: string): string
export function shapeExpiry(text: string): string
