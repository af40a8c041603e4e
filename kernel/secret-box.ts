import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import type { RandomBytes } from './tokens.ts'

/** Encrypts small secrets that are stored; AES-256-GCM, each sealed text bound to a name. */
export interface SecretBox {
  /** The first bytes of all that it seals: they differ from those of any other key. */
  mark: Buffer
  /** Never gives the same bytes twice. `name` is not kept in them, but needed to open them. */
  seal(text: string, name: string): Buffer
  open(sealed: Buffer, name: string): Opened
}

/** The text, or why it can't be opened; `damaged` also means sealed for another name. */
export type Opened = { text: string } | { problem: 'sealed with another key' | 'damaged' }

/** Sealed bytes: version, id of the key, nonce, cipher text, tag. */
const VERSION = 1
const KEY_ID = 4
const NONCE = 12
const TAG = 16
const HEAD = 1 + KEY_ID + NONCE

/** Also what was sealed for another name. */
export const DAMAGED = { problem: 'damaged' } as const
const OTHER_KEY = { problem: 'sealed with another key' } as const

const CIPHER = 'aes-256-gcm'

/** A box with a key of 32 bytes; `random` is the source of nonces. */
export function createSecretBox(key: Buffer, random: RandomBytes): SecretBox {
  // Tells another key from damage; a key is random, so these bytes of its hash help nobody.
  const mark = Buffer.concat([Buffer.of(VERSION), keyId(key)])

  return {
    mark,

    seal(text, name) {
      const nonce = random(NONCE)
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG })
      cipher.setAAD(boundTo(mark, name))
      const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([mark, nonce, hidden, cipher.getAuthTag()])
    },

    open(sealed, name) {
      if (sealed.length < HEAD + TAG || sealed[0] !== VERSION) return DAMAGED
      if (!sealed.subarray(0, mark.length).equals(mark)) return OTHER_KEY
      const nonce = sealed.subarray(mark.length, HEAD)
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG })
      decipher.setAAD(boundTo(mark, name))
      decipher.setAuthTag(sealed.subarray(-TAG))
      try {
        const open = [decipher.update(sealed.subarray(HEAD, -TAG)), decipher.final()]
        return { text: Buffer.concat(open).toString('utf8') }
      } catch {
        // The only thing that `final` throws for: the tag does not fit bytes, key and name.
        return DAMAGED
      }
    },
  }
}

function keyId(key: Buffer): Buffer {
  return createHash('sha256').update('secret box key id').update(key).digest().subarray(0, KEY_ID)
}

function boundTo(mark: Buffer, name: string): Buffer {
  return Buffer.concat([mark, Buffer.from(name)])
}
