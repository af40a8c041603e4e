import type { Preset } from '../scheme.ts'
import { CHAT } from './chat.ts'
import { CODE } from './code.ts'
import { OPERATIONS } from './operations.ts'
import { OWN } from './own.ts'
import { PEOPLE } from './people.ts'
import { SHOPS } from './shops.ts'

/** Every sender that is known: rows that decide nothing by themselves. */
export const PRESETS: readonly Preset[] = [
  ...OWN,
  ...CODE,
  ...SHOPS,
  ...CHAT,
  ...OPERATIONS,
  ...PEOPLE,
]
