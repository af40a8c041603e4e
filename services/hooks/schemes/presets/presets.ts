import type { Places, Scheme } from '../schemes.ts'
import { CHAT } from './chat.ts'
import { CODE } from './code.ts'
import { OPERATIONS } from './operations.ts'
import { OWN } from './own.ts'
import { PEOPLE } from './people.ts'
import { SHOPS } from './shops.ts'

/** A sender: how it signs, where its documents say so, and what is to be done there. */
export interface Preset {
  name: string
  title: string
  /** The address of its documentation. */
  docs: string
  /** What is to be done at the sender, in two sentences. */
  setup: string
  /**
   * What shows that the row is right: a vector that the sender has published, its own library, or
   * only what its document says.
   */
  tested: 'vector' | 'library' | 'document'
  scheme: Scheme | TokenScheme
}

/** A sender that proves itself by a token, which covers no byte: it is no signature. */
export interface TokenScheme extends Places, Pick<Scheme, 'answer' | 'refusal' | 'handshake'> {
  /** Headers with the token, beside the places where every token may be. */
  token: readonly string[]
}

/** Every sender that is known: rows that decide nothing by themselves. */
export const PRESETS: readonly Preset[] = [
  ...OWN,
  ...CODE,
  ...SHOPS,
  ...CHAT,
  ...OPERATIONS,
  ...PEOPLE,
]
