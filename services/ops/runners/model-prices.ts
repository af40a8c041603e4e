import { readFile, stat } from 'node:fs/promises'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { lazy } from '../../../kernel/lazy.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Usage } from './model-stream.ts'

const Amount = Type.Number({ minimum: 0 })
const Price = Type.Object(
  {
    input: Amount,
    output: Amount,
    /** Of input that the endpoint had in its cache; as `input` when absent. */
    cached_input: Type.Optional(Amount),
  },
  { additionalProperties: false },
)
/** What a model costs, in US dollars a million tokens. */
export type Price = Type.Static<typeof Price>

/** The file that `OPS_PRICES` names: a price by the model's name. */
const Prices = Type.Record(Type.String(), Price)
type Prices = Type.Static<typeof Prices>
const schema = lazy(() => Compile(Prices))

/** The price table as it stands; read again when its file has changed. */
export interface PriceSource {
  /** Undefined for a model that the table does not name. */
  of(model: string): Promise<Price | undefined>
}

/** Follows the price table. Throws for one that can't be read or is wrong, when it is first read. */
export async function openPrices(file: () => string | undefined, log: Log): Promise<PriceSource> {
  let known: { readonly place: string; readonly changed: number; readonly prices: Prices }
  let refused = ''

  async function read(place: string): Promise<Prices> {
    const changed = (await stat(place)).mtimeMs
    if (known?.place === place && known.changed === changed) return known.prices
    const prices = parsePrices(await readFile(place, 'utf8'), place)
    known = { place, changed, prices }
    return prices
  }

  async function current(): Promise<Prices> {
    const place = file()
    if (place === undefined) return {}
    try {
      return await read(place)
    } catch (error) {
      if (known === undefined) throw error
      const problem = messageOf(error)
      if (problem !== refused) log.warn('prices not re-read; the former ones stay', { problem })
      refused = problem
      return known.prices
    }
  }

  await current()
  return {
    async of(model) {
      const prices = await current()
      return Object.hasOwn(prices, model) ? prices[model] : undefined
    },
  }
}

/** What that many tokens cost, in US dollars. */
export function costOf(price: Price, { prompt, cached, completion }: Usage): number {
  const fresh = (prompt - cached) * price.input + cached * (price.cached_input ?? price.input)
  return (fresh + completion * price.output) / 1_000_000
}

function parsePrices(text: string, place: string): Prices {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new SyntaxError(`Price table ${place} is no JSON: ${messageOf(error)}`, { cause: error })
  }
  if (schema().Check(value)) return value
  const [first] = schema().Errors(value)
  const where = first?.instancePath === '' ? 'its top' : first?.instancePath
  throw new SyntaxError(`Price table ${place} is wrong at ${where}: ${first?.message}`)
}
