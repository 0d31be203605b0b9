/** The unencrypted parts of TLS in the bytes that one side sends. */

const ALERT = 21
const HANDSHAKE = 22
const CLIENT_HELLO = 1
const HEAD_BYTES = 5

/** The types of the records that begin in these bytes. */
const recordTypes = (bytes: Buffer): ReadonlyArray<number> => {
  const types: Array<number> = []
  for (let at = 0; at + HEAD_BYTES <= bytes.length; at += HEAD_BYTES + bytes.readUInt16BE(at + 3)) {
    types.push(bytes[at]!)
  }
  return types
}

/** Returns true if a client has sent a ClientHello, and alerts at most after it. */
export const isClientHelloAlone = (bytes: Buffer): boolean => {
  const [first, ...others] = recordTypes(bytes)
  return first === HANDSHAKE && bytes[HEAD_BYTES] === CLIENT_HELLO && others.every((type) => type === ALERT)
}
