/** The gateway's commands; each is answered when it is complete. */

/** How the gateway answers later requests. It carries out an operation in any case but the last. */
export type GatewayAnswer =
  | { readonly kind: "after"; readonly millis: number }
  | { readonly kind: "never" }
  /** Accepts no connection, and cuts those that there are. */
  | { readonly kind: "gone" }

export type GatewayCommand =
  /** Starts to listen on 127.0.0.1 with a secret (`whsec_…`); answers with the port. */
  | { readonly command: "listen"; readonly secret: string }
  | { readonly command: "answer"; readonly how: GatewayAnswer }
  /** Waits until this many operations have no answer; fails if they do not come. */
  | { readonly command: "holds"; readonly operations: number }
  /** Answers with a `Ledger`. */
  | { readonly command: "ledger" }

/** The operations that the gateway has carried out. */
export interface Ledger {
  readonly operations: number
  /** Operations that arrived again, as after a kill. */
  readonly repeated: number
  /** Operations that arrived again with another body, and payments that two operations have charged. */
  readonly wrong: number
  /** Operations without an answer now. */
  readonly held: number
}
