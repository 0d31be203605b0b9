/**
 * Traces: spans of a request, its command, the flush and the projection of its record, and the attempts of its webhooks
 * (semantics operation.traces). Without a provided service, nothing is traced and nothing is allocated.
 *
 * A record is written and projected, and its webhooks are sent, long after its request's code has run. So a trace is
 * remembered by names that these have anyway: the request's id, which is in the record, and the ids of its events.
 */
import { Context, Exit, Option, type Tracer } from "effect"

/** Names that are remembered; the oldest is forgotten first, and later spans of its trace are left out. */
const REMEMBERED_MAX = 10_000

export type Span = Tracer.Span

/** The end of a span. */
export interface Ended {
  readonly attributes: Readonly<Record<string, unknown>>
  /** Text of the error; undefined if there is none. */
  readonly error?: string | undefined
}

export interface Timed {
  /** By `performance.now()`. */
  readonly from: number
  readonly to: number
}

/** Decides whether a request's spans are sent. `parent` is the span of its sender, if that has one. */
export type Sampler = (parent: Tracer.AnySpan | undefined) => boolean

const nanosOf = (at: number): bigint => BigInt(Math.round((performance.timeOrigin + at) * 1000)) * 1000n

export class TraceStore {
  readonly #tracer: Tracer.Tracer
  readonly #sampler: Sampler
  readonly #remembered = new Map<string, Span>()

  constructor(tracer: Tracer.Tracer, sampler: Sampler) {
    this.#tracer = tracer
    this.#sampler = sampler
  }

  /** Begins the span of a request, whose sender may have begun the trace. */
  beginRequest(name: string, from: number, parent: Tracer.AnySpan | undefined): Span {
    return this.#begin(name, "server", from, parent, this.#sampler(parent))
  }

  beginChild(name: string, kind: Tracer.SpanKind, parent: Span, from: number = performance.now()): Span {
    return this.#begin(name, kind, from, parent, parent.sampled)
  }

  /** Adds a child that has ended. */
  add(name: string, parent: Span, { from, to }: Timed, ended: Ended): void {
    endSpan(this.beginChild(name, "internal", parent, from), to, ended)
  }

  remember(name: string, span: Span): void {
    if (this.#remembered.size >= REMEMBERED_MAX) {
      const [oldest] = this.#remembered.keys()
      this.#remembered.delete(oldest!)
    }
    this.#remembered.set(name, span)
  }

  find(name: string): Span | undefined {
    return this.#remembered.get(name)
  }

  #begin(
    name: string,
    kind: Tracer.SpanKind,
    from: number,
    parent: Tracer.AnySpan | undefined,
    sampled: boolean
  ): Span {
    return this.#tracer.span({
      name,
      kind,
      sampled,
      parent: Option.fromUndefinedOr(parent),
      annotations: Context.empty(),
      links: [],
      startTime: nanosOf(from),
      root: parent === undefined
    })
  }
}

/** Ends a span at a time of `performance.now()`. */
export const endSpan = (span: Span, at: number, { attributes, error }: Ended): void => {
  for (const name in attributes) {
    const value = attributes[name]
    if (value !== undefined && value !== null) span.attribute(name, value)
  }
  // Without a stack: it would show this line.
  span.end(nanosOf(at), error === undefined ? Exit.void : Exit.fail(Object.assign(new Error(error), { stack: error })))
}

/** The header by which a trace goes on in another process (W3C Trace Context). */
export const traceparentOf = ({ sampled, spanId, traceId }: Span): string =>
  `00-${traceId.padStart(32, "0")}-${spanId}-${sampled ? "01" : "00"}`

/** Puts the span into a request's header lines, in place of the span that its sender has sent. */
export const withTraceparent = (rawHeaders: ReadonlyArray<string>, span: Span | undefined): ReadonlyArray<string> => {
  if (span === undefined) return rawHeaders
  const lines = ["traceparent", traceparentOf(span)]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== "traceparent") lines.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return lines
}

export const Traces: Context.Reference<TraceStore | undefined> = Context.Reference("till/engine/Traces", {
  defaultValue: (): TraceStore | undefined => undefined
})
