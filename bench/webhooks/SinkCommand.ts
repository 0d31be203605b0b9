/** The sink's commands; each is answered when it is complete. */

export type SinkCommand =
  /** Starts to listen on 127.0.0.1; answers with the port. */
  | { readonly command: "listen" }
  /** Discards the arrivals and records a load's deliveries to this many endpoints. */
  | { readonly command: "begin"; readonly run: string; readonly endpoints: number }
  /** Sets the answer to later requests: a 200, a 500, or none. */
  | { readonly command: "answer"; readonly how: SinkAnswer }
  /** Waits for this many different deliveries; fails when deliveries cease. */
  | { readonly command: "await"; readonly deliveries: number }
  /** Answers with an `ArrivalsRecord`. */
  | { readonly command: "take" }

export type SinkAnswer = "success" | "failure" | "nothing"
