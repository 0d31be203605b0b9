/**
 * No client's text keeps the service busy for longer than its length explains: every function of a client's text is
 * tested with hostile texts up to the greatest length that reaches it (semantics requests.size, limits.addresses).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readPaymentQuery } from "../src/dashboard/payments/PaymentSearch.ts"
import { csvCell } from "../src/dashboard/frame/CsvFile.ts"
import { cursorIn } from "../src/dashboard/frame/Table.ts"
import { grouped } from "../src/dashboard/frame/Values.ts"
import { returnPathOf } from "../src/dashboard/frame/Links.ts"
import { BrandAccent, BrandSupport } from "../src/domain/Brand.ts"
import { isCardNumber, withoutCardNumbers } from "../src/domain/Cards.ts"
import { MetadataParameter } from "../src/domain/Metadata.ts"
import { networksOf } from "../src/domain/Networks.ts"
import { IMAGE_BYTES_MAX, readImage } from "../src/domain/RasterImage.ts"
import * as SearchQuery from "../src/domain/SearchQuery.ts"
import { wordsIn } from "../src/domain/SearchWords.ts"
import { clean } from "../src/domain/Secrets.ts"
import { RedirectUrl } from "../src/domain/RedirectUrl.ts"
import { Email, isWebOrigin, WebUrl } from "../src/domain/Text.ts"
import { meaningOf } from "../src/client/Answer.ts"
import { verifyWebhook, WebhookVerificationError } from "../src/client/index.ts"
import { Accounts } from "../src/engine/Accounts.ts"
import { usernameOf } from "../src/http/Authentication.ts"
import { clientAddressOf } from "../src/server/ClientAddress.ts"
import { parseBody, pathOfUnstorableText, withoutUnstorableText } from "../src/http/JsonBody.ts"
import { makePayloadDecoder } from "../src/http/Payload.ts"
import * as PlainRequest from "../src/server/PlainRequest.ts"
import { makeQueryDecoder } from "../src/http/QueryString.ts"
import { apiVersionOf, idempotencyKeyOf } from "../src/http/RequestHeaders.ts"
import { loggedOf } from "../src/http/RequestLogEntry.ts"
import { syntaxErrorIn } from "../src/json/JsonParse.ts"
import { JsonReader, JsonSyntaxError } from "../src/json/JsonReader.ts"
import * as Amounts from "../src/html/assets/amount.js"
import * as CardText from "../src/html/assets/card.js"
import { readEntered } from "../src/pages/checkout/CheckoutForm.ts"
import { escape } from "../src/html/Html.ts"
import { moneyOf } from "../src/html/Money.ts"
import { uploadIn } from "../src/html/Uploads.ts"
import { withoutSlash } from "../src/html/Routing.ts"
import { countryFor, ENGLISH, translationFor } from "../src/html/Translation.ts"
import { SEARCHED_PAYMENT_INTENT } from "../src/payments/shared/Search.ts"
import { CreateCustomer } from "../src/domain/Customer.ts"
import { type Prepare, steepnessOf } from "./support/Growth.ts"
import { asHeader, drawnTexts, type Frame, hostileTexts } from "./support/HostileTexts.ts"
import { Random, runSeed } from "./support/Random.ts"
import { countRuns, isWhole, runs } from "./support/Runs.ts"

/** The greatest length of a text that reaches a function, in characters. */
const [HEADER, BODY, FORM, ENTERED] = isWhole ? [15_000, 1_048_576, 1_048_576, 5_000] : [15_000, 65_536, 65_536, 5_000]

/** Additional hostile texts for each function. */
const DRAWN_TEXTS = 160

const PLAIN: Frame = ["", ""]
const BETWEEN: Frame = ["a", "b"]

type Target = readonly [name: string, lengthMax: number, prepare: Prepare, ...frames: ReadonlyArray<Frame>]

/** A function of the text itself. */
const of =
  (run: (text: string) => unknown): Prepare =>
  (text) =>
  () =>
    run(text)

/** A function of a header's value. */
const ofHeader =
  (run: (value: string) => unknown): Prepare =>
  (text) =>
    of(run)(asHeader(text))

/** A function that throws for most texts. */
const refusing = (run: (text: string) => unknown, Failure: new (...args: Array<never>) => Error): Prepare =>
  of((text) => {
    try {
      run(text)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  })

const ofSchema = (schema: Schema.Decoder<unknown>): Prepare => of(Schema.decodeUnknownExit(schema))

const ofBody =
  (contentType?: (text: string) => string): Prepare =>
  (text) => {
    const body = Buffer.from(contentType === undefined ? text : "{}")
    const type = contentType?.(asHeader(text)) ?? "application/json"
    return () => parseBody(body, type)
  }

const proxies = networksOf("10.0.0.0/8")!
const sender = clientAddressOf(proxies)
const sentThrough = (name: string): Prepare =>
  ofHeader((value) => sender({ remoteAddress: "10.0.0.1", headers: { [name]: value } }))

const decodeQuery = makeQueryDecoder(
  Schema.Struct({ limit: Schema.optionalKey(Schema.String), query: Schema.optionalKey(Schema.String) }),
  { expand: true, route: "GET /v1/customers" }
)
const decodeCustomer = makePayloadDecoder(CreateCustomer)
const none = () => Effect.succeed({ documents: [], hasMore: false })
const nowhere = Accounts.of({ list: none, search: none } as never)
const money = moneyOf("usd", "en")

const logged = (path: string, query: string, body: unknown, key: string) =>
  loggedOf({
    request: { id: "req_1", method: "POST", path, query, idempotencyKey: key },
    apiVersion: "2026-03-09",
    caller: { account: "mer_1:test", apiKey: "key_1" },
    answer: {
      status: 404,
      body: JSON.stringify({ error: { type: "a", code: "b", param: path, message: `Unrecognized (${path}).` } })
    },
    body,
    at: 0,
    millis: 1
  })

const HEADERS: ReadonlyArray<Target> = [
  ["Forwarded", HEADER, sentThrough("forwarded"), PLAIN, ["for=a", "b"], ['for="', ""], ["for = ", ";x"]],
  ["X-Forwarded-For", HEADER, sentThrough("x-forwarded-for"), PLAIN, BETWEEN, ["", ",10.0.0.1"], ["[", "]:1"]],
  ["Authorization", HEADER, ofHeader(usernameOf), PLAIN, ["Basic ", "!"], ["Basic a", " !"], ["Bearer ", ""]],
  ["Accept-Language", HEADER, ofHeader((header) => translationFor(header)), PLAIN, ["en-", "!"], ["", ",de;q=0.1"]],
  ["Accept-Language, for a country", HEADER, ofHeader(countryFor), PLAIN, ["en-", "!"], ["de;", ";q=1"]],
  ["Content-Type", HEADER, ofBody((type) => type), PLAIN, ["application/json", "x"]],
  [
    "Idempotency-Key",
    HEADER,
    ofHeader((key) => idempotencyKeyOf({ headers: { "idempotency-key": key }, isRepeated: () => false })),
    PLAIN
  ],
  [
    "X-API-Version",
    HEADER,
    ofHeader((version) =>
      apiVersionOf({ headers: { "x-api-version": version }, isRepeated: () => false }, "2026-03-09", ["2026-03-09"])
    ),
    PLAIN,
    BETWEEN
  ],
  [
    "the head of a request",
    HEADER,
    (text) => {
      const bytes = Buffer.from(`GET /v1/customers HTTP/1.1\r\nhost: a\r\nx: ${asHeader(text)}\r\n\r\n`, "latin1")
      return () => PlainRequest.parse(bytes, 0)
    },
    PLAIN,
    BETWEEN,
    ["\r\n", ":"]
  ],
  ["X-Signature", HEADER, ofHeader(signed), PLAIN, ["t=1,v1=", "x"], ["t=", ""]]
]

function signed(header: string) {
  try {
    return verifyWebhook({ body: "{}", header, secret: "whsec_a" })
  } catch (error) {
    return assert.instanceOf(error, WebhookVerificationError)
  }
}

const STRING_OF_NAME: Frame = ['{"\\n":"', ""]

const BODIES: ReadonlyArray<Target> = [
  ["a body", BODY, ofBody(), PLAIN, ['{"a":', "}"], ['{"\\n":"', '"}'], STRING_OF_NAME],
  [
    "the plain parser",
    BODY,
    refusing((text) => new JsonReader(text).read(), JsonSyntaxError),
    PLAIN,
    STRING_OF_NAME,
    ['{"\\n":[', "1]}"]
  ],
  ["the place of a mistake", BODY, of(syntaxErrorIn), ["[", "x"]],
  ["text that is not UTF-8", BODY, (text) => ofBytes(Buffer.concat([Buffer.from(text), Buffer.of(0xff)])), PLAIN],
  ["replacement characters", BODY, (text) => ofBytes(Buffer.from(`${"\ufffd".repeat(text.length / 3)}\ud800`)), PLAIN],
  [
    "text that cannot be stored",
    BODY,
    of((text) => [pathOfUnstorableText([text]), withoutUnstorableText([text])]),
    PLAIN
  ],
  ["an answer to the client", BODY, of((text) => meaningOf({ status: 500, headers: {}, text }, null, 0)), PLAIN],
  ["a webhook's body", BODY, of((body) => signedBody(body)), PLAIN]
]

/** A form with a file whose boundary is `b`. */
const ofUpload: Prepare = (text) => {
  const body = Buffer.from(text, "latin1")
  return () => uploadIn("multipart/form-data; boundary=b", body)
}

const ofImage: Prepare = (text) => {
  const file = Buffer.from(text, "latin1")
  return () => readImage(file)
}

const UPLOADS: ReadonlyArray<Target> = [
  [
    "a form with a file",
    BODY,
    ofUpload,
    PLAIN,
    ["--b\r\n", "\r\n--b--"],
    ['--b\r\ncontent-disposition: form-data; name="a"; filename="', ""],
    ['--b\r\ncontent-disposition: form-data; name="a"; filename="b"\r\n\r\n', "\r\n--b--"]
  ],
  [
    "a form's type",
    HEADER,
    ofHeader((type) => uploadIn(type, Buffer.from("--b"))),
    ["multipart/form-data;", "boundary=b"],
    ["multipart/form-data; boundary=", ""],
    ['multipart/form-data; boundary="', ""]
  ],
  [
    "an image",
    Math.min(BODY, IMAGE_BYTES_MAX),
    ofImage,
    PLAIN,
    ["\u00ff\u00d8\u00ff", ""],
    ["\u00ff\u00d8\u00ff\u00da\0\u0002", "\u00ff\u00d9"],
    ["RIFF\u00ff\u00ff\u0003\0WEBP", ""]
  ]
]

const ofBytes = (body: Buffer) => () => parseBody(body, "application/json")

const signedBody = (body: string) => {
  try {
    return verifyWebhook({ body, header: `t=1,v1=${"0".repeat(64)}`, secret: "whsec_a", nowMillis: 1000 })
  } catch (error) {
    return assert.instanceOf(error, WebhookVerificationError)
  }
}

const DETAILS = ["email", "name", "phone", "line1", "city", "postal_code", "card_number", "card_expiry", "card_cvc"]

const PARAMETERS: ReadonlyArray<Target> = [
  ["an email", BODY, ofSchema(Email), PLAIN, ["a@a", " "], ["a@", "\n"]],
  ["a URL", BODY, ofSchema(WebUrl), PLAIN, ["https://a/", ""], ["https://", ""]],
  ["a redirect URL", BODY, ofSchema(RedirectUrl), PLAIN, ["https://a/?", ""], ["a:", ""]],
  ["an origin", HEADER, of(isWebOrigin), PLAIN, ["https://", "!"]],
  ["a brand's support", BODY, ofSchema(BrandSupport), PLAIN, ["mailto:a@a", " "], ["mailto:a@", "?"]],
  ["a brand's colour", BODY, ofSchema(BrandAccent), PLAIN, ["#", ""]],
  ["metadata", BODY, of((text) => Schema.decodeUnknownExit(MetadataParameter)({ a: text, [text]: "a" })), PLAIN],
  [
    "a customer",
    BODY / 4,
    of((text) => decodeCustomer({ escapes: true, value: { email: text, name: text, metadata: { [text]: text } } })),
    PLAIN,
    ["a@a", " "]
  ],
  ["a query", HEADER, of(decodeQuery), PLAIN, ["limit=", ""], ["expand[", "]"], ["expand", "[0]=a"]],
  [
    "a search",
    HEADER,
    of((text) => SearchQuery.parse(text, SEARCHED_PAYMENT_INTENT.fields)),
    PLAIN,
    ['status:"', ""],
    ["metadata[", ""],
    ["amount>", "x"]
  ],
  ["card numbers in a text", BODY / 4, of(withoutCardNumbers), PLAIN, ["4", "x"]],
  ["a card number", BODY, of(isCardNumber), PLAIN],
  ["secrets in a text", HEADER, of(clean), PLAIN, ["sk_test_", "!"], ["%25", "4242"]],
  [
    "the log, of a path",
    HEADER,
    of((text) => logged(`/v1/${text}`, "", undefined, "key")),
    PLAIN,
    ["customers/cus_", "!"]
  ],
  ["the log, of a query", HEADER, of((text) => logged("/v1", text, undefined, "key")), PLAIN, ["query=", ""]],
  [
    "the log, of a body",
    4096,
    of((text) => logged("/v1", "", { name: text, metadata: { [text]: text } }, text)),
    PLAIN
  ],
  ["a path with a slash", HEADER, of((text) => withoutSlash(`/${text}/`)), PLAIN]
]

const ENTERED_TEXTS: ReadonlyArray<Target> = [
  [
    "a filter of payments",
    HEADER,
    (text) => {
      const query = new URLSearchParams({ amount: text, metadata: text, status: text, from: text })
      return () =>
        Effect.runSync(
          Effect.provideService(readPaymentQuery({ account: "mer_1:test", query, zone: "UTC" }), Accounts, nowhere)
        )
    },
    PLAIN,
    ["1", "x"],
    ["1-", "x"]
  ],
  ["the words of a text", ENTERED, of(wordsIn), PLAIN, ["a", ""], ["\u3042", "\u0301"]],
  [
    "a search",
    HEADER,
    (text) => {
      const query = new URLSearchParams({ query: `1 ${text}` })
      return () =>
        Effect.runSync(
          Effect.provideService(readPaymentQuery({ account: "mer_1:test", query, zone: "UTC" }), Accounts, nowhere)
        )
    },
    PLAIN,
    ["1", "x"],
    ["$", "1"]
  ],
  ["an amount", ENTERED, of((text) => Amounts.readAmount(text, money)), PLAIN, ["1", "x"], ["$", "x"]],
  ["an amount in groups", ENTERED, of(grouped), PLAIN, ["1", "x"]],
  ["an expiry", ENTERED, of(CardText.readExpiry), PLAIN, ["12", "x"], ["12 /", "x"]],
  [
    "a payer's form",
    ENTERED,
    of((text) =>
      readEntered(
        { amount: null, card: true, saved: [], address: true, phone: true },
        new Map([...DETAILS.map((name) => [name, text] as const), ["country", "US"]]),
        ENGLISH
      )
    ),
    PLAIN,
    ["a@a", " "],
    ["12", "x"]
  ],
  ["a text on a page", BODY, of(escape), PLAIN],
  ["a cell of a file", BODY, of(csvCell), PLAIN, BETWEEN],
  ["cursors", HEADER, of((text) => cursorIn(new URLSearchParams({ after: text, before: text }))), PLAIN, ["pi_", "!"]],
  ["where to go back to", HEADER, of(returnPathOf), PLAIN, ["/test/", "!"], ["/test/a/", "!"], ["/test?", "&done=x"]],
  ["a form's fields", FORM, of((text) => [...new URLSearchParams(text)]), PLAIN]
]

describe("the time of a client's text grows with its length", () => {
  const targets = [...HEADERS, ...BODIES, ...UPLOADS, ...PARAMETERS, ...ENTERED_TEXTS].map(([name, ...target]) => ({
    name,
    target
  }))

  it.each(targets)("$name", ({ target: [lengthMax, prepare, ...frames] }) => {
    const texts = [...hostileTexts(frames), ...drawnTexts(new Random(runSeed), runs(DRAWN_TEXTS))]
    countRuns(texts.length)
    const steep = texts.flatMap(([text, textOf]) => {
      const steepness = steepnessOf(prepare, textOf, lengthMax)
      return steepness === undefined ? [] : [`${text} ${steepness}`]
    })
    assert.deepStrictEqual(steep, [])
  })
})

describe("the measurement", () => {
  /** A quadratic function: reads each character once for each of some before it. */
  const quadratic =
    (step: number): Prepare =>
    (text) =>
    () => {
      let found = 0
      for (let i = 0; i < text.length; i += step) {
        for (let j = 0; j < i; j += step) if (text.charCodeAt(j) === 0x62) found++
      }
      return found
    }
  const spaces = (length: number) => " ".repeat(length)

  it("detects a quadratic function, also one that takes a few milliseconds, and one that does not end", () => {
    // Another program can slow the short texts down, which hides the growth; a few measurements outlast it.
    const detected = (prepare: Prepare, lengthMax: number): string => {
      for (let attempt = 0; attempt < 10; attempt++) {
        const steepness = steepnessOf(prepare, spaces, lengthMax)
        if (steepness !== undefined) return steepness
      }
      return "never steep"
    }
    assert.match(detected(quadratic(4), HEADER), /^takes \d/u)
    assert.match(detected(quadratic(64), 65_536), /^takes \d/u)
    const trailing = of((text) => /\s*$/u.test(`${text}x`))
    assert.match(detected(trailing, HEADER / 4), /^takes \d/u)
    const endless = of(() => {
      for (;;);
    })
    assert.match(steepnessOf(endless, spaces, HEADER, 100)!, /^does not end/u)
  })

  it("accepts a linear one, also one that allocates a lot", () => {
    const values = (length: number) => `[${"[1],".repeat(length / 4)}0]`
    assert.isUndefined(steepnessOf(of(JSON.parse), values, BODY))
    const copies = of((text) => text.split("").map((one) => [one]))
    assert.isUndefined(steepnessOf(copies, values, BODY))
  })
})
