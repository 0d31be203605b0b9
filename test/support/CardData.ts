/** Card data as commands get it: tokenized by the simulator. */
import type { PaymentMethodData } from "../../src/domain/PaymentMethod.ts"
import { simulator } from "../../src/payments/Simulator.ts"
import type { TokenizedPaymentMethodData } from "../../src/payments/PaymentMethods.ts"
import { tokenize } from "../../src/payments/PaymentMethods.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

const tokenizer = {
  config: paymentsConfig(),
  processors: { test: simulator, live: simulator },
  account: "mer_000000000000000000000000:test"
}

export const tokenized = (data: PaymentMethodData): TokenizedPaymentMethodData => tokenize(tokenizer, data)
