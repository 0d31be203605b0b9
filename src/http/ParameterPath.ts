/** How a parameter is named in errors (semantics T8): `amount`, `payment_method_data[card][number]`, `line_items[0][price]`. */
export const parameterPath = (path: ReadonlyArray<PropertyKey>): string => {
  let name = ""
  for (const key of path) name = name === "" ? String(key) : `${name}[${String(key)}]`
  return name
}
