/** The sink takes these commands, and answers each once it is carried out. */

export type SinkCommand =
  /** Starts to listen on 127.0.0.1; answers with the port. */
  | { readonly command: "listen" }
  /** Forgets what has arrived, and records a load's deliveries to so many endpoints from now on. */
  | { readonly command: "begin"; readonly run: string; readonly endpoints: number }
  /** From now on requests are answered like this: with a 200, with a 500, or not at all. */
  | { readonly command: "answer"; readonly how: SinkAnswer }
  /** Answers when so many different deliveries have arrived; fails when none arrives any more. */
  | { readonly command: "await"; readonly deliveries: number }
  /** Answers with an `ArrivalsRecord`. */
  | { readonly command: "take" }

export type SinkAnswer = "success" | "failure" | "nothing"
