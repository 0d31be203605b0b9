/** What maintenance says where there is nothing to maintain. */
import { Data } from "effect"

/** Every installation that was started has records, so it is another one than was meant. */
export class NothingThere extends Data.TaggedError("NothingThere") {
  override readonly message =
    "there is no record: do TILL_DATA_DIR and DATABASE_URL name the installation that you mean?"
}
