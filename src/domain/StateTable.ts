/** State tables: the allowed operations on an object per state, and the states that they lead to. */

/** The target states of an operation by state; a state without a key is a `✗` of the table. */
type Row<State extends string> = Readonly<Partial<Record<State, ReadonlyArray<State>>>>

export interface StateTable<Operation extends string, State extends string> {
  readonly statesFor: (operation: Operation) => ReadonlyArray<State>
  readonly isAllowed: (operation: Operation, state: State) => boolean
  /** Throws if the table does not allow the transition. `id` is the object's. */
  readonly requireTransition: (id: string, operation: Operation, from: State, to: State) => void
}

export type OperationOf<Table extends { readonly statesFor: (operation: never) => unknown }> = Parameters<
  Table["statesFor"]
>[0]

/** Makes a table for objects with these states. */
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
