/**
 * A state table says what may happen to an object in which state, and where it may lead. A lifecycle asks its table
 * before it does anything, and checks every step that it takes against it.
 */

/** An operation may lead here from the states in which it is possible; a state that is no key is a `✗` of the table. */
type Row<State extends string> = Readonly<Partial<Record<State, ReadonlyArray<State>>>>

export interface StateTable<Operation extends string, State extends string> {
  /** Lists the states in which an operation is possible. */
  readonly statesFor: (operation: Operation) => ReadonlyArray<State>
  readonly isAllowed: (operation: Operation, state: State) => boolean
  /** Throws if an operation of a lifecycle leads where the table does not. `id` is the object's. */
  readonly requireTransition: (id: string, operation: Operation, from: State, to: State) => void
}

export type OperationOf<Table extends { readonly statesFor: (operation: never) => unknown }> = Parameters<
  Table["statesFor"]
>[0]

/** Makes the table of objects with these states. */
export const stateTable =
  <State extends string>() =>
  <Operation extends string>(rows: Readonly<Record<Operation, Row<State>>>): StateTable<Operation, State> => ({
    statesFor: (operation) => Object.keys(rows[operation]) as Array<State>,
    isAllowed: (operation, state) => state in rows[operation],
    requireTransition: (id, operation, from, to) => {
      if (rows[operation][from]?.includes(to) !== true) {
        throw new Error(`${id}: ${operation} does not lead from ${from} to ${to}`)
      }
    }
  })
