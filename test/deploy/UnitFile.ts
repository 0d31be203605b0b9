/** systemd's unit files, with the features that those in deploy/systemd use. */

/** Values by section and key, in order, without those that an empty value resets. */
export type Unit = ReadonlyMap<string, ReadonlyMap<string, ReadonlyArray<string>>>

/** Reads a unit file; fails with the first line that is neither a comment, a section nor a setting. */
export const parseUnit = (text: string): Unit => {
  const unit = new Map<string, Map<string, Array<string>>>()
  let section: Map<string, Array<string>> | undefined
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(?:[#;].*)?$/u.test(line)) continue
    const name = /^\[(?<name>[A-Z][A-Za-z]+)\]$/u.exec(line)?.groups?.["name"]
    if (name !== undefined) {
      if (unit.has(name)) throw new Error(`line ${index + 1}: a second [${name}]`)
      unit.set(name, (section = new Map()))
      continue
    }
    const { key, value } = /^(?<key>[A-Z][A-Za-z]+)=(?<value>\S.*|)$/u.exec(line)?.groups ?? {}
    if (key === undefined || value === undefined || section === undefined || /["'\\]/u.test(value)) {
      throw new Error(`line ${index + 1}: ${JSON.stringify(line)}`)
    }
    if (value === "") section.set(key, [])
    else section.set(key, [...(section.get(key) ?? []), value])
  }
  return unit
}

/** Returns all values of a setting. */
export const valuesOf = (unit: Unit, section: string, key: string): ReadonlyArray<string> =>
  unit.get(section)?.get(key) ?? []

/** Returns the only value of a setting. */
export const valueOf = (unit: Unit, section: string, key: string): string => {
  const [value, ...others] = valuesOf(unit, section, key)
  if (value === undefined || others.length > 0) throw new Error(`${key}= is not there once`)
  return value
}

/** Replaces specifiers such as `%i`, the instance, by their values. */
export const specified = (text: string, specifiers: Readonly<Record<string, string>>): string =>
  text.replaceAll(/%(?<letter>.)/gu, (specifier, letter: string) => {
    const value = letter === "%" ? "%" : specifiers[letter]
    if (value === undefined) throw new Error(`${specifier} is not known here`)
    return value
  })

/** Parses `NAME=value` lines of a unit's `Environment=` or of an `EnvironmentFile=`. */
export const variablesOf = (assignments: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    assignments.map((assignment) => {
      const { name, value } = /^(?<name>[A-Z_]+)=(?<value>[^\s"']*)$/u.exec(assignment)?.groups ?? {}
      if (name === undefined || value === undefined) throw new Error(`no assignment: ${assignment}`)
      return [name, value]
    })
  )

/** Returns the lines of an `EnvironmentFile=` that are no comments. */
export const assignmentsIn = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => !/^\s*(?:[#;].*)?$/u.test(line))
